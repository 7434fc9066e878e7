#!/bin/sh
# Build the bundle's wheel, or take the one made before from the same parts, and install it into .venv.
set -eu
cd "$(dirname "$0")/.."
umask 022 # other users' sandboxes read what is installed
wheels=${HANDIWORK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/handiwork}/bundle
wheel=$(.venv/bin/python bundle/build.py "$wheels")
uv -q pip install -p .venv "$wheel"
find "$wheels" -maxdepth 1 -name '*.whl' ! -path "$wheel" -mtime +7 -delete
