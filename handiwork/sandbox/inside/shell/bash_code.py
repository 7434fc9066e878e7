"""The bash code of the persistent shell, which starts commands and reports their end, and of its jobs."""

from __future__ import annotations

from collections.abc import Mapping

# Each file is opened again by its name below /proc, so commands inherit no descriptor and cannot close one. All code
# runs with stderr at /dev/null, which hides its trace when the user has `set -x`.
_FUNCTIONS = r"""
set +o history +o histexpand; shopt -u checkwinsize; unset TMOUT MAILCHECK; PS1= PS2= PS0=
__hw_id= __hw_last=0 __hw_ended= __hw_due=1 __hw_command= __hw_secrets=(); : "${__hw_restore=}"
__hw_return() { return "$1"; }
__hw_tell() { builtin printf '%s %s %s\0' "$1" "$__hw_id" "$2" >|@STATUS@; }
__hw_dump() {
  {
    shopt -p; set +o; declare -px; declare -f; declare -Fx; declare -p __hw_restore; alias -p
    builtin echo "# whole $__hw_id"
  } >|@STATE@
}
__hw_begin() {
  __hw_id=$1 __hw_ended= __hw_due=1
  export -n __hw_id __hw_command
  local __hw_secret
  {
    IFS= builtin read -r -d '' __hw_command || :
    while IFS= builtin read -r -d '' __hw_secret; do
      __hw_secrets+=("${__hw_secret%%=*}")
      builtin export "$__hw_secret" || builtin export "${__hw_secret%%=*}"
    done
  } <@COMMAND@
  if ((${#__hw_secrets[@]})); then : >|@COMMAND@; fi
  if [[ $__hw_restore ]]; then __hw_command="__hw_options"$'\n'"$__hw_command"; fi
  __hw_tell began 0
}
__hw_forget() {
  local __hw_secret
  # Before 4.4, an empty array is unbound.
  for __hw_secret in ${__hw_secrets[@]+"${__hw_secrets[@]}"}; do
    # One that the command made read-only cannot be unset.
    builtin unset -v "$__hw_secret" || builtin export -n "$__hw_secret"
  done
  __hw_secrets=()
}
__hw_options() {
  {
    local options=$__hw_restore
    __hw_restore=
    set -"$options"
    if [[ $- != *e* ]]; then return "$__hw_last"; fi
  } 2>/dev/null
}
__hw_quiet() {
  if [[ ! $__hw_restore ]]; then
    if [[ $- == *x* ]]; then __hw_restore+=x; fi
    if [[ $- == *v* ]]; then __hw_restore+=v; fi
  fi
  set +xv
}
__hw_end() {
  __hw_last=$? __hw_ended=1
  __hw_quiet
  __hw_forget
  unset PROMPT_COMMAND
  PROMPT_COMMAND=$__hw_hook
}
__hw_prompt() {
  local code=$?
  if [[ $__hw_ended ]]; then code=$__hw_last; fi
  __hw_last=$code __hw_ended=
  # Bash 5.2 prints the prompt's old memory after an unbalanced quote: leave it alone where it is empty.
  if [[ ${PS1-x}${PS2-x}${PS0-x} ]]; then PS1= PS2= PS0=; fi
  __hw_quiet
  __hw_forget
  if [[ $__hw_due == 1 ]]; then
    # Input that the command did not read is not a command; the next one is typed after this is told.
    while builtin read -r -t 0 && builtin read -r -t 0.01 -N 4096; do :; done
    __hw_due=2
  fi
  if [[ $__hw_due ]]; then
    __hw_tell ended "$code"
    __hw_due=
    __hw_dump
    __hw_tell kept 0
  fi
}
__hw_hook='{ __hw_prompt; } 2>/dev/null'
PROMPT_COMMAND=$__hw_hook
trap '{ __hw_forget; __hw_dump; } 2>/dev/null' EXIT
"""

# errexit and onecmd would end the new shell at once; the other options are restored.
_RESTORE = r"""
unset $(compgen -e)
. @STATE@
builtin cd -- "$PWD"
set +e +t
unset -f $(compgen -A function __hw_)
"""

_BASHRC = r"""
if [[ -f ~/.bashrc ]]; then . ~/.bashrc; fi
"""

# The `:` replaces the part that bash skips after a command with an unbalanced quote. The `if` sets $? to the last exit
# code for the command without tripping `set -e`.
_LINE = (
    ": ; { __hw_begin %s; } 2>/dev/null; "
    'if __hw_return "$__hw_last"; then eval "$__hw_command"; else eval "$__hw_command"; fi; '
    "{ __hw_end; } 2>/dev/null\n"
)


# The state is read once the shell has written all of it after its last command; a killed shell never does. Job
# control is off: it would put a job's programs out of the job's reach.
_JOB = r"""
IFS= builtin read -r -d '' __hw_command <@COMMAND@ || :
for ((__hw_left = 200; __hw_left; __hw_left--)); do
  __hw_state=$(<@STATE@)
  if [[ $__hw_state == *'# whole @ID@' || $__hw_left -lt 100 && $__hw_state == *'# whole '* ]]; then break; fi
  sleep 0.01
done
exec 9>&2 2>/dev/null
if ((__hw_left)); then
  unset $(compgen -e)
  eval "$__hw_state"
  set +emt
  unset -f $(compgen -A function __hw_)
fi
{
  IFS= builtin read -r -d '' __hw_state || :
  while IFS= builtin read -r -d '' __hw_state; do builtin export "$__hw_state"; done
} <@COMMAND@
: >|@COMMAND@
unset __hw_state __hw_left __hw_restore __hw_secrets
exec 2>&9 9>&- @CLOSE@
builtin cd -- "$1" || exit
shift
eval "$__hw_command"
"""


def command_text(command: bytes, secrets: Mapping[str, str]) -> bytes:
    """Return the text for the shell or a job: the command, and variables that are unset after it."""
    assignments = (f"{name}={value}\0".encode("utf-8", "surrogateescape") for name, value in secrets.items())
    return b"".join((command, b"\0" * bool(secrets), *assignments))


def startup_code(status: str, command: str, state: str, *, restored: bool, bashrc: bool) -> str:
    """Return the shell's startup code; the paths are its status pipe, command text and saved state."""
    parts = "exec 9>&2 2>/dev/null\n" + _RESTORE * restored + _BASHRC * bashrc + _FUNCTIONS + "exec 2>&9 9>&-\n"
    return parts.replace("@STATUS@", status).replace("@COMMAND@", command).replace("@STATE@", state)


def job_code(state: int, last: str, command: int) -> str:
    """Return code for a bash, with a directory as its first argument, that runs a command there as the shell would.

    ``state`` and ``command`` are descriptors that it inherits, ``last`` is the token of the shell's last command.
    """
    paths = {"@STATE@": f"/proc/self/fd/{state}", "@COMMAND@": f"/proc/self/fd/{command}"}
    code = _JOB.replace("@CLOSE@", f"{state}<&- {command}<&-").replace("@ID@", last)
    for placeholder, path in paths.items():
        code = code.replace(placeholder, path)
    return code


def command_line(token: str) -> bytes:
    """Return the line to type so that the shell runs its command text and reports its end with ``token``."""
    return (_LINE % token).encode()
