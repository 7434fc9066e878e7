#!/usr/bin/env bash
folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$folder/lib${PYTHONPATH:+:$PYTHONPATH}"
_write_env WINDOW "${WINDOW:-100}"
_write_env OVERLAP "${OVERLAP:-2}"
_write_env FIRST_LINE 0
_write_env CURRENT_FILE ""
