"""Operations on the server itself: models, agents, settings, health, metrics."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from starlette.responses import PlainTextResponse, Response

from handiwork.agents.registry import descriptions
from handiwork.llm import availability
from handiwork.server.operations import Operation, OperationCall
from handiwork.server.schemas.catalog import AgentInfo, AgentList, ModelInfo, ModelList, SettingsView
from handiwork.server.schemas.sessions import Success
from handiwork.server.supervisor import SessionSupervisor
from handiwork.settings import load, settings_file


async def list_models(call: OperationCall[None, None]) -> ModelList:
    """List the local models and the providers, each with its state or missing key."""
    models = [ModelInfo(name=name, ready=ready, about=about) for name, ready, about in availability.models()]
    return ModelList(default=load({}).model, models=models)


async def list_agents(call: OperationCall[None, None]) -> AgentList:
    """List the installed agents."""
    agents = [AgentInfo.model_validate(agent) for agent in descriptions()]
    return AgentList(default=load({}).agent, agents=agents)


async def show_settings(call: OperationCall[None, None]) -> SettingsView:
    """Return the default settings of new sessions."""
    settings = load({})
    return SettingsView(
        file=str(settings_file()),
        version=version("handiwork"),
        model=settings.model,
        base_url=settings.base_url,
        agent=settings.agent,
        sandbox=settings.sandbox,
        image=settings.image,
        allow_net=list(settings.allow_net),
        confirmation=settings.confirmation,
        plan_mode=settings.plan_mode,
        limits=settings.limits,
        secrets=[secret.partition("=")[0] for secret in settings.secrets],
    )


async def show_health(call: OperationCall[None, None]) -> Success:
    """Succeed if the server and its log work; needs no token."""
    await call.supervisor.store.sessions(limit=1)
    return Success()


async def show_metrics(call: OperationCall[None, None]) -> Response:
    """Return the server's metrics in the Prometheus text format."""
    counters: RequestMetrics = call.request.app.state.counters
    return PlainTextResponse(counters.text(call.supervisor), media_type="text/plain; version=0.0.4")


@dataclass
class RequestMetrics:
    """The server's counters since its start."""

    began: float = field(default_factory=time.monotonic)
    requests: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])

    def text(self, supervisor: SessionSupervisor) -> str:
        """Return the metrics in the Prometheus text format."""
        hosted, waiting = supervisor.counts
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        lines = _metric("handiwork_sessions_running", "gauge", "Sessions at work in this server.", hosted - waiting)
        lines += _metric("handiwork_sessions_waiting", "gauge", "Sessions that wait with their sandbox.", waiting)
        lines += _metric("handiwork_followers", "gauge", "WebSockets that follow a session.", supervisor.channels.count)
        lines += _metric("handiwork_uptime_seconds", "gauge", "Since the start.", round(time.monotonic() - self.began))
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        lines += _metric("process_resident_memory_bytes", "gauge", "Resident memory of the server.", memory)
        lines += ["# HELP handiwork_requests_total Requests answered.", "# TYPE handiwork_requests_total counter"]
        for (method, status), count in sorted(self.requests.items()):
            lines.append(f'handiwork_requests_total{{method="{method}",status="{status}"}} {count}')
        return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, about: str, value: float) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", f"{name} {value}"]


OPERATIONS = (
    Operation("GET", "/api/models", list_models, ModelList, refuses=()),
    Operation("GET", "/api/agents", list_agents, AgentList, refuses=()),
    Operation("GET", "/api/settings", show_settings, SettingsView, refuses=()),
    Operation("GET", "/health", show_health, Success, refuses=(503,)),
    Operation("GET", "/metrics", show_metrics, None, gives="text/plain", refuses=(503,)),
)
