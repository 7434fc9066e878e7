"""What the tests of bubblewrap say of any sandbox holds for one in Docker."""

from __future__ import annotations

import pytest

from scripts.harness.images import image
from tests.limits.test_over_a_limit import (
    sandbox,
    test_a_command_that_starts_too_many_processes,
    test_a_full_disk_which_can_be_cleared,
    test_memory,
    test_one_large_file,
)
from tests.sandbox.helpers import Box
from tests.sandbox.test_background_commands import test_a_server_in_the_background_is_used_and_stopped
from tests.sandbox.test_executing import (
    test_a_command_runs_in_the_workspace_at_the_users_own_path,
    test_a_large_output_is_kept_whole_as_a_blob,
    test_an_action_that_does_not_run_in_a_sandbox_is_an_error_for_the_agent,
    test_cancelling_stops_the_action_and_the_shell_lives_on,
    test_closing_ends_all_processes_and_removes_the_socket,
    test_files_are_uploaded_and_downloaded,
    test_it_must_be_started_first,
    test_output_arrives_while_the_command_runs,
    test_the_shell_keeps_its_state_between_commands,
)
from tests.sandbox.test_terminals import (
    test_a_closed_terminal_ends_its_programs_and_the_agent_s_shell_goes_on,
    test_what_the_user_writes_is_in_the_copy_and_the_network_is_closed,
)
from tests.sandbox.test_the_workspace import (
    test_a_directory_that_is_not_copied_is_laid_under,
    test_changes_go_to_the_upper_layer_only,
    test_credentials_are_never_mounted,
    test_paths_are_mounted_read_only_on_request,
)

__all__ = [
    "sandbox",
    "test_a_closed_terminal_ends_its_programs_and_the_agent_s_shell_goes_on",
    "test_a_command_runs_in_the_workspace_at_the_users_own_path",
    "test_a_command_that_starts_too_many_processes",
    "test_a_directory_that_is_not_copied_is_laid_under",
    "test_a_full_disk_which_can_be_cleared",
    "test_a_large_output_is_kept_whole_as_a_blob",
    "test_a_server_in_the_background_is_used_and_stopped",
    "test_an_action_that_does_not_run_in_a_sandbox_is_an_error_for_the_agent",
    "test_cancelling_stops_the_action_and_the_shell_lives_on",
    "test_changes_go_to_the_upper_layer_only",
    "test_closing_ends_all_processes_and_removes_the_socket",
    "test_credentials_are_never_mounted",
    "test_files_are_uploaded_and_downloaded",
    "test_it_must_be_started_first",
    "test_memory",
    "test_one_large_file",
    "test_output_arrives_while_the_command_runs",
    "test_paths_are_mounted_read_only_on_request",
    "test_the_shell_keeps_its_state_between_commands",
    "test_what_the_user_writes_is_in_the_copy_and_the_network_is_closed",
]


@pytest.fixture(autouse=True)
def in_docker(docker_daemon: None, box: Box) -> None:
    box.image = image("bookworm")
