"""JWTs against an issuer's published keys: only a token that is right in every respect gets in."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey, RSAKey

from migrations.run import upgrade
from staging.api.auth.jwt import JwtAuthenticator
from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError
from staging.domain.identity import ActorKind, Tenant
from staging.settings import Settings
from tests.support.api import ApiProcess
from tests.support.issuers import AUDIENCE, ISSUER, Issuer, reply


def settings(url: str, **changes: Any) -> Settings:
    values = {"jwt_jwks_url": url, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, **changes}
    return Settings(_env_file=None, auth="jwt", **values)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as one:
        yield one


@pytest.fixture(scope="module")
def authenticator(issuer: Issuer) -> JwtAuthenticator:
    return JwtAuthenticator(settings(issuer.url))


def refusal(authenticator: JwtAuthenticator, token: str) -> ErrorCode:
    with pytest.raises(OpstageError) as caught:
        authenticator.authenticate(token)
    return caught.value.code


def part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_a_right_token_says_who_it_is(authenticator: JwtAuthenticator, issuer: Issuer) -> None:
    end = int(time.time()) + 100
    credential = authenticator.authenticate(issuer.token(exp=end, kind="agent", locale="en"))
    actor = credential.actor
    assert (actor.user_id, actor.tenant, actor.kind) == ("u-lin", Tenant("B001", "S01"), ActorKind.AGENT)
    assert actor.locale == "en"
    assert credential.expires_at is not None
    assert credential.expires_at.timestamp() == end


@pytest.mark.parametrize(
    ("alg", "key"),
    [
        ("RS384", None),
        ("RS512", None),
        ("ES256", ECKey.generate_key("P-256", {"kid": "ec-256"})),
        ("ES384", ECKey.generate_key("P-384", {"kid": "ec-384"})),
        ("ES512", ECKey.generate_key("P-521", {"kid": "ec-512"})),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rs_and_es_are_taken(alg: str, key: ECKey | None) -> None:
    with Issuer() as issuer:
        issuer.published += [key] if key else []
        token = issuer.token(alg=alg, key=key)
        assert JwtAuthenticator(settings(issuer.url)).authenticate(token).actor.user_id == "u-lin"


CLAIMS: dict[str, dict[str, Any]] = {
    "wrong issuer": {"iss": "https://other.example"},
    "issuer of another type": {"iss": [ISSUER]},
    "wrong audience": {"aud": "somebody-else"},
    "audiences without us": {"aud": ["a", "b"]},
    "expired": {"exp": int(time.time()) - 1},
    "expired long ago": {"exp": 0},
    "expiry as text": {"exp": "9999999999"},
    "expiry as true": {"exp": True},
    "expiry beyond time": {"exp": 10**30},
    "expiry not a number": {"exp": float("inf")},
    "not valid yet": {"nbf": int(time.time()) + 86_400},
    "made in the future": {"iat": int(time.time()) + 86_400},
    **{f"no {name}": {name: None} for name in ("iss", "aud", "exp", "sub", "brands", "subsidiary", "kind")},
    **{f"empty {name}": {name: ""} for name in ("sub", "brands", "subsidiary", "kind")},
    **{f"{name} as number": {name: 7} for name in ("sub", "brands", "subsidiary", "kind")},
    "sub of control characters": {"sub": "u\0lin"},
    "sub too long": {"sub": "u" * 65},
    "the system's own kind": {"kind": "system"},
    "a kind nobody knows": {"kind": "admin"},
    "kind in another case": {"kind": "Person"},
    "kinds": {"kind": ["person"]},
}


@pytest.mark.parametrize("name", CLAIMS)
def test_wrong_claims_are_refused(name: str, authenticator: JwtAuthenticator, issuer: Issuer) -> None:
    assert refusal(authenticator, issuer.token(**CLAIMS[name])) == ErrorCode.UNAUTHENTICATED


def test_several_audiences_with_us_among_them_are_taken(
    authenticator: JwtAuthenticator, issuer: Issuer
) -> None:
    assert authenticator.authenticate(issuer.token(aud=["a", AUDIENCE])).actor.user_id == "u-lin"


def signed_with(secret: bytes, alg: str, claims: dict[str, Any]) -> str:
    signed = f"{part({'alg': alg, 'kid': 'rsa-1'})}.{part(claims)}"
    digest = hmac.digest(secret, signed.encode(), f"sha{alg[2:]}")
    return f"{signed}.{part(digest)}"


def forged(issuer: Issuer) -> dict[str, str]:
    """Tokens of somebody who knows all that is public."""
    claims = issuer.claims()
    head, body, signature = issuer.token().split(".")
    pem = issuer.key.raw_value.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[union-attr]
    theirs = RSAKey.generate_key(2048, {"kid": "rsa-1"})
    critical = part({"alg": "RS256", "kid": "rsa-1", "crit": ["x"], "x": 1})
    confused = {
        f"the public key as a secret, {alg}": signed_with(pem, alg, claims)
        for alg in ("HS256", "HS384", "HS512")
    }
    public = RSAKey.import_key(issuer.key.as_dict(private=False))
    encrypted = jwe.encrypt_compact({"alg": "RSA-OAEP", "enc": "A128GCM"}, json.dumps(claims), public)
    admin = part(issuer.claims(kind="operator"))
    return {
        **confused,
        "alg none": f"{part({'alg': 'none'})}.{part(claims)}.",
        "alg None": f"{part({'alg': 'None', 'kid': 'rsa-1'})}.{part(claims)}.",
        "alg none, signed": f"{part({'alg': 'none', 'kid': 'rsa-1'})}.{part(claims)}.{signature}",
        "no alg": f"{part({'kid': 'rsa-1'})}.{part(claims)}.{signature}",
        "PS256": issuer.token(header={"alg": "RS256"}).replace(head, part({"alg": "PS256", "kid": "rsa-1"})),
        "ES256 by an RSA key": f"{part({'alg': 'ES256', 'kid': 'rsa-1'})}.{body}.{signature}",
        "no signature": f"{head}.{body}.",
        "other claims, old signature": f"{head}.{admin}.{signature}",
        "signature cut": f"{head}.{body}.{signature[:-4]}",
        "signed by their own key": issuer.token(key=theirs),
        "their key in the header": issuer.token(key=theirs, header={"jwk": theirs.as_dict(private=False)}),
        "their keys' address": issuer.token(key=theirs, header={"jku": "http://127.0.0.1:1/"}),
        "a key id of nobody": issuer.token(header={"kid": "../../dev/null"}),
        "critical header unknown to us": f"{critical}.{body}.{signature}",
        "encrypted, not signed": encrypted,
        "two parts": f"{head}.{body}",
        "four parts": f"{head}.{body}.{signature}.x",
        "not base64": "@@@.###.$$$",
        "header no object": f"{part([1])}.{body}.{signature}",
        "claims no object": issuer.token().replace(body, part([1])),
        "claims not json": issuer.token().replace(body, part(b"\xff")),
        "dots": "..",
        "nested without end": f"{part(b'[' * 5000)}.{body}.{signature}",
        "one of ours": "ops_" + "x" * 43,
    }


def test_forged_tokens_are_refused(authenticator: JwtAuthenticator, issuer: Issuer) -> None:
    tokens = forged(issuer)
    refused = {name: refusal(authenticator, token) for name, token in tokens.items()}
    assert refused == dict.fromkeys(tokens, ErrorCode.UNAUTHENTICATED)


def test_a_secret_among_the_published_keys_verifies_nothing() -> None:
    with Issuer() as issuer:
        secret = OctKey.generate_key(256, {"kid": "oct-1"})
        issuer.answer = lambda handler, _: reply(
            handler, {"keys": [secret.as_dict(private=True), issuer.key.as_dict(private=False)]}
        )
        authenticator = JwtAuthenticator(settings(issuer.url))
        token = issuer.token(alg="HS256", key=secret)
        assert refusal(authenticator, token) == ErrorCode.UNAUTHENTICATED
        assert authenticator.authenticate(issuer.token()).actor.user_id == "u-lin"


def test_a_rotated_key_is_found_and_a_withdrawn_one_stops_working() -> None:
    with Issuer() as issuer:
        authenticator = JwtAuthenticator(settings(issuer.url), look_again_s=0.3, unknown_key_s=0.1)
        old = issuer.token()
        authenticator.authenticate(old)
        issuer.key = RSAKey.generate_key(2048, {"kid": "rsa-2"})
        issuer.published.append(issuer.key)
        time.sleep(0.15)
        assert authenticator.authenticate(issuer.token()).actor.user_id == "u-lin"
        assert authenticator.authenticate(old).actor.user_id == "u-lin"
        issuer.published.pop(0)
        time.sleep(0.35)
        assert refusal(authenticator, old) == ErrorCode.UNAUTHENTICATED


def test_tokens_nobody_can_verify_do_not_make_us_ask_the_issuer_each_time(issuer: Issuer) -> None:
    authenticator = JwtAuthenticator(settings(issuer.url))
    before = issuer.asked
    for _ in range(20):
        refusal(authenticator, issuer.token(header={"kid": "unknown"}))
    assert issuer.asked - before == 1


def test_without_keys_nobody_gets_in() -> None:
    issuer = Issuer()
    authenticator = JwtAuthenticator(settings(issuer.url))
    assert refusal(authenticator, issuer.token()) == ErrorCode.UNAVAILABLE


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"keys": []}', b'{"keys": [{"kty": "RSA"}]}', b'{"keys": 1}', b"<html>"]
)
def test_keys_that_are_none_are_no_keys(body: bytes) -> None:
    with Issuer() as issuer:
        issuer.answer = lambda handler, _: reply(handler, body)
        assert refusal(JwtAuthenticator(settings(issuer.url)), issuer.token()) == ErrorCode.UNAVAILABLE


def test_an_issuer_that_is_away_for_a_while_is_bridged_but_not_for_long() -> None:
    with Issuer() as issuer:
        authenticator = JwtAuthenticator(settings(issuer.url), look_again_s=0.1, keys_last_s=0.6)
        authenticator.authenticate(issuer.token())
        issuer.stop()
        time.sleep(0.15)
        assert authenticator.authenticate(issuer.token()).actor.user_id == "u-lin"
        time.sleep(0.5)
        assert refusal(authenticator, issuer.token()) == ErrorCode.UNAVAILABLE


def test_its_settings_are_needed() -> None:
    with pytest.raises(ValueError) as caught:
        JwtAuthenticator(settings("http://127.0.0.1:1/", jwt_audience=""))
    assert "OPSTAGE_JWT_AUDIENCE" in str(caught.value)


def test_over_http(sqlite_database: str, redis_url: str, issuer: Issuer, tmp_path: Path) -> None:
    env = {
        "OPSTAGE_DATABASE_URL": sqlite_database,
        "OPSTAGE_REDIS_URL": redis_url,
        "OPSTAGE_DATA_DIR": str(tmp_path),
        "OPSTAGE_ERP_ADAPTER": "tests.support.effects_adapter:build_adapter",
        "OPSTAGE_AUTH": "jwt",
        "OPSTAGE_JWT_JWKS_URL": issuer.url,
        "OPSTAGE_JWT_ISSUER": ISSUER,
        "OPSTAGE_JWT_AUDIENCE": AUDIENCE,
    }
    upgrade(sqlite_database, "queue")
    agent = issuer.token(kind="agent")
    expired = issuer.token(exp=int(time.time()) - 1)
    with ApiProcess(env, tmp_path) as api, httpx.Client(base_url=api.url) as http:
        path = "/v1/preparations/none/confirm"
        statuses = [
            http.post(path, headers={"Authorization": f"Bearer {token}"}).status_code
            for token in (agent, issuer.token(), expired, "x.y.z")
        ]
        assert statuses == [403, 404, 401, 401]
        assert agent not in api.log()
