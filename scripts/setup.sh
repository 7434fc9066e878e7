#!/bin/sh
# Make .venv with everything Handiwork needs, from nothing but Python, git and Debian's apt; doing it again is quick.
set -eu
cd "$(dirname "$0")/.."
umask 022 # other users' sandboxes read what is installed
cache=${HANDIWORK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/handiwork}
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo '

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# step TITLE COMMAND...: run it and say how long it took; what it prints is shown when it fails.
step() {
    title=$1 began=$(date +%s)
    shift
    said=$("$@" 2>&1) || fail "$title: failed" "$said"
    echo "$title: $(($(date +%s) - began)) s"
}

check_tools() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        fail 'The sandbox is built from Debian packages with apt-get and dpkg-deb, which are not here: use Debian 12.'
    missing=
    command -v git >/dev/null || missing="$missing git"
    has_uv || venv_python >/dev/null || missing="$missing python3-venv"
    [ -z "$missing" ] || fail 'Programs are missing. Run:' "  ${sudo}apt-get update && ${sudo}apt-get install -y$missing"
}

# A shim of a version manager can be on the PATH without a program behind it.
has_uv() {
    uv --version >/dev/null 2>&1
}

# Any Python will do to fetch uv, which then finds one that is new enough.
venv_python() {
    for python in python3 python3.13 python3.12 python3.11; do
        "$python" -c 'import ensurepip, venv' 2>/dev/null && echo "$python" && return
    done
    return 1
}

get_uv() {
    [ -x "$cache/uv/bin/uv" ] && return
    "$(venv_python)" -m venv --clear "$cache/uv" &&
        "$cache/uv/bin/pip" -q install --disable-pip-version-check uv
}

make_environment() {
    .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    uv -q venv --clear --python '>=3.11' .venv ||
        fail 'Python 3.11 or newer is needed. Run:' "  ${sudo}apt-get update && ${sudo}apt-get install -y python3"
}

install_libraries() {
    stamp=$(sha256sum requirements.lock pyproject.toml)
    [ "$(cat .venv/handiwork-setup 2>/dev/null)" = "$stamp" ] && return
    uv -q pip install -p .venv --require-hashes -r requirements.lock &&
        uv -q pip install -p .venv --no-deps -e . &&
        echo "$stamp" >.venv/handiwork-setup
}

# Root makes its sandboxes as another user, and so tries as one.
may_make_sandboxes() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Ur true
    else
        unshare -Ur true
    fi
}

check_sandboxes() {
    may_make_sandboxes 2>/dev/null && return
    for setting in kernel.apparmor_restrict_unprivileged_userns=0 kernel.unprivileged_userns_clone=1; do
        if [ "$(sysctl -n "${setting%=*}" 2>/dev/null)" = $((1 - ${setting#*=})) ]; then
            fail 'This system forbids user namespaces, which the sandbox is made of. Run:' \
                "  echo $setting | ${sudo}tee /etc/sysctl.d/60-handiwork.conf && ${sudo}sysctl -w $setting"
        fi
    done
    fail 'This system forbids user namespaces, which the sandbox is made of. In a container, start it with:' \
        '  docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined ...'
}

check_tools
if ! has_uv; then
    step 'uv' get_uv
    PATH=$cache/uv/bin:$PATH
fi
step 'Python environment .venv' make_environment
step 'Python libraries' install_libraries
step 'sandbox bundle and browser' scripts/bundle.sh
step 'web app' scripts/web.sh build
check_sandboxes
echo 'Ready: .venv/bin/handiwork --help'
