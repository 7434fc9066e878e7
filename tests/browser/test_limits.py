from __future__ import annotations

from handiwork.sandbox.client import GRACE
from handiwork.sandbox.inside.browser.cdp.chromium import START_TIMEOUT
from handiwork.sandbox.inside.browser.engine import BUDGET, LOOKING
from handiwork.sandbox.inside.browser.process import TIMEOUT


def test_a_slow_start_and_a_slow_page_together_do_not_end_the_browser() -> None:
    assert START_TIMEOUT + BUDGET + LOOKING < TIMEOUT < GRACE
