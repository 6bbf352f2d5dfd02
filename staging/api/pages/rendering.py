"""An HTML page in the reader's language; all that is of the person or the ERP comes later, by the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, select_autoescape

from staging.api.locale import asked_locale
from staging.api.pages.texts import texts

HERE = Path(__file__).parent
_templates = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True), auto_reload=False
)


def page(request: Request, template: str, **values: Any) -> HTMLResponse:
    """``template`` rendered with ``values``, ``_`` (a text in the page's language), ``locale`` and ``path``."""
    locale = asked_locale(request) or request.app.state.settings.locale
    words = texts(locale)
    html = _templates.get_template(template).render(
        _=lambda text: words.get(text, text),
        words=dict(words),
        locale=locale,
        path=request.url.path,
        **values,
    )
    return HTMLResponse(html, headers={"Cache-Control": "no-store", "Vary": "Accept-Language, Cookie"})
