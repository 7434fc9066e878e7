"""The user that a session's sandboxes run as, when the platform runs as root."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handiwork.sandbox.users import sandbox_ids


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="the platform does not run as root")
def test_children_that_begin_at_once_have_the_user_of_their_session(tmp_path: Path) -> None:
    sessions = [tmp_path / str(number) for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        for session in sessions:
            session.mkdir()
            assert len(set(threads.map(sandbox_ids, [session] * 8))) == 1
    assert len(set(map(sandbox_ids, sessions))) == len(sessions)
