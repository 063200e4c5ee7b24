# SPDX-License-Identifier: MIT
load ../helper

# A repository with one commit.
setup() {
    command -v git >/dev/null || skip "git is not installed"
    cd "$T"
    mkdir -p share/setup
    cp "$ROOT/share/setup/version" share/setup/
    echo 1.2.3 >VERSION
    export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
        GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    git init -q .
    git add .
    git commit -qm one
    commit=$(git rev-parse --short HEAD)
}

@test "the version of a commit names it, and says whether files differ from it" {
    [ "$(share/setup/version)" = "1.2.3+$commit" ]
    echo >>share/setup/version
    [ "$(share/setup/version)" = "1.2.3+$commit-dirty" ]
}

@test "the version of the tagged commit alone is that of the release" {
    git tag v1.2.3
    [ "$(share/setup/version)" = 1.2.3 ]
    echo >>share/setup/version
    [ "$(share/setup/version)" = "1.2.3+$commit-dirty" ]
}

@test "a tree without its history has the version of its file, also inside another repository" {
    mkdir -p elsewhere/share/setup
    cp VERSION elsewhere/
    cp share/setup/version elsewhere/share/setup/
    [ "$(elsewhere/share/setup/version)" = 1.2.3 ]
    rm -r .git
    [ "$(share/setup/version)" = 1.2.3 ]
}

@test "Debian's changelog has the version of the file" {
    [ "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$ROOT/debian/changelog")" = "$(cat "$ROOT/VERSION")" ]
}

@test "programs print the version that the tree had when they were built" {
    [ "$(dt-cat --version)" = "dt-cat (dt) $(sed -nE 's/.*DT_VERSION "(.*)"/\1/p' "${DT_BUILD:-$ROOT/build}/include/dt-version.h")" ]
    [[ "$(dt-cat --version)" == "dt-cat (dt) $(cat "$ROOT/VERSION")"* ]]
}
