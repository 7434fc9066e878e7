#!/usr/bin/env bash
folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$folder/lib${PYTHONPATH:+:$PYTHONPATH}"
