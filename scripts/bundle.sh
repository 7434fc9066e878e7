#!/bin/sh
# Build the wheels of the bundle and the browser, or take those made before from the same parts; install into .venv.
set -eu
cd "$(dirname "$0")/.."
umask 022 # other users' sandboxes read what is installed
PATH=$PWD/.venv/bin:$PATH
wheels=${HANDIWORK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/handiwork}/bundle
made=$(.venv/bin/python bundle/build.py "$wheels" bundle browser)
bundle=$(echo "$made" | head -n 1) browser=$(echo "$made" | tail -n 1)
uv -q pip install -p .venv "$bundle" "$browser"
find "$wheels" -maxdepth 1 -name '*.whl' ! -path "$bundle" ! -path "$browser" -mtime +7 -delete
