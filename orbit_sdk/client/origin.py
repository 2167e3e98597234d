"""An address as people write it, taken apart: host, port, TLS, and the proxy that stands in front of it."""

from __future__ import annotations

import ssl
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from orbit_sdk.client.streams import Address


@dataclass(frozen=True, slots=True)
class Origin:
    """`scheme` and `host` (with its port) as requests name them; `base` is the path before every path."""

    scheme: str
    host: str
    base: str
    address: Address
    proxy: str | None


def origin_of(url: str, verify: ssl.SSLContext | bool = True) -> Origin:
    """The parts of `http[s]://host[:port][/base]`. Proxies are those of the environment (HTTPS_PROXY, …)."""
    parts = urlsplit(url)
    scheme, name = parts.scheme, parts.hostname or ""
    tls = None
    if scheme == "https":
        tls = verify if isinstance(verify, ssl.SSLContext) else _context(verify)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if proxy is not None and urllib.request.proxy_bypass(name):
        proxy = None
    address = Address(name, parts.port or (443 if tls is not None else 80), tls)
    return Origin(scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), address, proxy)


def _context(verify: bool) -> ssl.SSLContext:
    import httpx  # it brings its own list of authorities, and costs a tenth of a second

    return httpx.create_ssl_context(verify=verify)
