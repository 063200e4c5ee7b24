# SPDX-License-Identifier: MIT
# share/packaging: recipes for package managers that cannot be run here.
load ../helper

@test "the recipe for conda has the version, and dependencies that conda can read" {
    need_python yaml
    grep -qx "  version: \"$(cat "$ROOT/VERSION")\"" "$ROOT/share/packaging/conda/recipe.yaml"
    "$PYTHON" - "$ROOT/share/packaging/conda/recipe.yaml" <<'END'
import sys

import yaml

recipe = yaml.safe_load(open(sys.argv[1]))
assert set(recipe) <= {"context", "package", "source", "build", "requirements", "tests", "about"}
specifications = [s for group in recipe["requirements"].values() for s in group if "${{" not in s]
assert len(specifications) > 10
try:
    from rattler import MatchSpec, Version
    Version(recipe["context"]["version"])
    for text in specifications:
        assert MatchSpec(text).name is not None
except ImportError:
    assert all(s.replace("-", "").isalnum() for s in specifications)
END
}

@test "the formula for Homebrew is Ruby" {
    command -v ruby >/dev/null || skip "no ruby"
    ruby -c "$ROOT/share/packaging/homebrew/dt-tools.rb"
}
