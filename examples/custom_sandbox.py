"""A sandbox of one's own: a row in SANDBOXES makes its name one for `sandbox=`, `--sandbox` and the settings."""

import handiwork
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.sandbox.create import SANDBOXES, SandboxKind, SandboxOptions
from handiwork.sandbox.limits.limits import ResourceLimits


class SmallSandbox(BubblewrapSandbox):
    """Bubblewrap for small programs: no file over 1 MiB, few processes."""

    name = "small"


def small(options: SandboxOptions) -> Sandbox:
    """Return a SmallSandbox, with its own limits in place of the usual ones."""
    return SmallSandbox(
        options.paths,
        options.save_blob,
        options.read_only,
        ResourceLimits(file_size=1 << 20, processes=64),
        snapshots=options.snapshots,
        egress=options.egress,
    )


# A sandbox that ships with Handiwork has its row in handiwork/sandbox/create.py itself.
SANDBOXES["small"] = SandboxKind(small)

if __name__ == "__main__":
    print(handiwork.run("Write two megabytes of zeros into a file.", workspace="examples", sandbox="small").outcome)
