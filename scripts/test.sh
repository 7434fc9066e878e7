#!/bin/sh
# Run the tests that the options choose. What fails is run once more, one by one, and both are said: on a loaded
# machine a real browser or daemon may be late, but a test that fails twice is wrong.
set -u
cd "$(dirname "$0")/.."
.venv/bin/python -m pytest "$@"
code=$?
[ $code = 1 ] || exit $code
echo '=== once more, one by one: the tests that failed'
.venv/bin/python -m pytest "$@" -n 0 -v --last-failed --last-failed-no-failures none
