"""The sandboxes of tests/sandbox."""

from __future__ import annotations

import pytest

from tests.sandbox.conftest import box, namespaces_allowed, runtime_dir_of_its_own

__all__ = ["box", "runtime_dir_of_its_own"]


@pytest.fixture(autouse=True, scope="session")
def _namespaces() -> None:
    if not namespaces_allowed():
        pytest.skip("this machine does not allow unprivileged user namespaces")
