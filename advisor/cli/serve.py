"""``advisor serve``: pages and an API over the store, for a browser and for programs; it only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from advisor.cli.common import load_settings, option, settings_with
from advisor.report.plain import print_lines, print_progress

if TYPE_CHECKING:
    from advisor.serve.hosting import Beside, Hosting


def serve(
    address: Annotated[str, option("Listen on this interface.", "--address", metavar="IP")] = "127.0.0.1",
    port: Annotated[
        int, option("And on this port; 0 is any free one.", metavar="N", min=0, max=65_535)
    ] = 8321,
    token: Annotated[
        str | None,
        option(
            "Who has this token may read: env:NAME, or file:PATH that only you can read.", metavar="SOURCE"
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        option("Believe this reverse proxy who its user is. Repeatable.", metavar="IP|NETWORK"),
    ] = None,
    user_header: Annotated[
        str, option("Where the proxy names its user.", metavar="HEADER")
    ] = "X-Forwarded-User",
    name: Annotated[
        list[str] | None, option("Host name by which browsers call it. Repeatable.", metavar="HOST")
    ] = None,
    schedule: Annotated[bool, option("Run the schedules, too, as schedule run does.", "--schedule")] = False,
    install: Annotated[
        bool, option("Run it like this as a service of your own systemd, from now on.", "--install")
    ] = False,
) -> None:
    """Show jobs, prices, spending and schedules of the store in a browser, and as JSON below /api.

    Requests only read: nothing is run, pulled or changed. Other machines are let in with a token or by a
    reverse proxy alone: docs/serve.md.
    """
    from advisor.serve.hosting import Hosting, check_store, host
    from advisor.serve.views import Reader

    hosting = Hosting(
        address=address,
        port=port,
        token=token,
        proxies=tuple(proxy or ()),
        user_header=user_header,
        names=tuple(name or ()),
    )
    config = settings_with(prices__offline=True, report__cost_explorer=False)
    hosting.access()
    check_store(config.settings.store, may_make=schedule)
    if install:
        _install(hosting, schedule=schedule)
        return
    beside = _schedules() if schedule else None
    host(
        Reader(config),
        hosting,
        lambda url: print_progress(f"advisor serves {url}; Ctrl-C or SIGTERM ends it"),
        beside,
    )


def _schedules() -> Beside:
    """What `schedule run` does, with the settings as they are: commands may use the network."""
    from advisor.cli.schedule import voice_of
    from advisor.serve.hosting import Beside
    from advisor.service.schedule.running import Stop
    from advisor.service.schedule.running import serve as run_schedules

    settings, stop = load_settings().settings, Stop()
    return Beside(lambda: run_schedules(settings.store, settings.schedule, voice_of(settings), stop), stop)


def _install(hosting: Hosting, *, schedule: bool) -> None:
    """The same command as a service; secrets are named in the unit, never written."""
    from advisor.formats.user_files import at_home
    from advisor.service.schedule.managing import install_service

    words = ["serve", "--address", hosting.address, "--port", str(hosting.port)]
    if hosting.token is not None:
        kind, _, place = hosting.token.partition(":")
        words += ["--token", f"file:{at_home(place).absolute()}" if kind == "file" else hosting.token]
    words += [word for one in hosting.proxies for word in ("--proxy", one)]
    words += ["--user-header", hosting.user_header] if hosting.proxies else []
    words += [word for one in hosting.names for word in ("--name", one)]
    words += ["--schedule"] if schedule else []
    path = install_service("advisor-serve", words)
    print_lines(
        f"Wrote {path}; systemd runs it from now on, with variables of ~/.config/advisor/secrets.env.",
        "`loginctl enable-linger` lets it run while you are logged out.",
    )
