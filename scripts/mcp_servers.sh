#!/bin/sh
# Install the reference MCP servers that slow tests drive, into the user's cache, and print their folder:
# node_modules/ has those of npm, python/ is an environment with those of PyPI, node is the program that runs the former.
set -eu
cd "$(dirname "$0")/.."
umask 022 # other users' sandboxes read what is installed
npm_servers='@modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31'
python_servers='mcp-server-time==2026.10.19 mcp-server-fetch==2026.10.24'
folder=${HANDIWORK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/handiwork}/mcp-servers
PATH=$(scripts/web.sh path)
stamp="$npm_servers $python_servers $(command -v node)"
if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    # shellcheck disable=SC2086 # the lists are words
    npm install --prefix "$folder" --silent --no-audit --no-fund --ignore-scripts $npm_servers >&2
    .venv/bin/uv -q venv --python "$(readlink -f .venv/bin/python)" "$folder/python" >&2
    # shellcheck disable=SC2086
    .venv/bin/uv -q pip install --compile-bytecode -p "$folder/python" $python_servers >&2
    ln -sf "$(command -v node)" "$folder/node"
    echo "$stamp" >"$folder/stamp"
fi
echo "$folder"
