"""Flower's configuration file, executed by Flower at start: nothing is shown to anyone who did not log in.

With basic auth alone, Flower 2.2 leaves /metrics and /healthcheck open (RELIABILITY A27). ``prepare`` runs before
every request, so this closes those two and whatever page a later release may add; only its style sheets and
scripts under /static stay readable.
"""

from __future__ import annotations

from flower.api import BaseApiHandler
from flower.views import BaseHandler
from tornado.options import options
from tornado.web import HTTPError


def require_login(handler: BaseHandler) -> None:
    """Answer 401 unless the request carries the configured user and password."""
    if not handler.current_user:
        raise HTTPError(401)


if not options.basic_auth:
    raise SystemExit("Flower runs with a user and password only: set FLOWER_BASIC_AUTH=user:password")
if "prepare" in vars(BaseHandler):
    raise SystemExit("This Flower has a prepare hook of its own; look at it before replacing it")
BaseHandler.prepare = require_login
BaseApiHandler.prepare = require_login  # its own only asks whether any login is configured
