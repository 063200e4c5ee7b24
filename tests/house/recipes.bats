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

@test "rattler-build renders the recipe for conda" {
    need_python rattler_build
    "$PYTHON" - "$ROOT/share/packaging/conda/recipe.yaml" >"$T/rendered" <<'END'
import sys

from rattler_build import Stage0Recipe, VariantConfig

variants = VariantConfig({"c_compiler": ["gcc"], "c_stdlib": ["sysroot"]})
[rendered] = Stage0Recipe.from_file(sys.argv[1]).render(variants)
print(rendered.recipe.package.name, rendered.recipe.package.version)
assert len(rendered.recipe.requirements.to_dict()["host"]) > 10
END
    [ "$(cat "$T/rendered")" = "dt-tools $(cat "$ROOT/VERSION")" ]
}

@test "the commands by which the recipe for conda tests its package succeed" {
    need_python yaml
    cd "$T"
    "$PYTHON" - "$ROOT/share/packaging/conda/recipe.yaml" >commands <<'END'
import sys

import yaml

tests = yaml.safe_load(open(sys.argv[1]))["tests"]
print(*(line for test in tests for line in test["script"]), sep="\n")
END
    sh -e commands
    [ -e run/latest/model.safetensors ]
}

@test "the formula for Homebrew is Ruby" {
    command -v ruby >/dev/null || skip "no ruby"
    ruby -c "$ROOT/share/packaging/homebrew/dt-tools.rb"
}
