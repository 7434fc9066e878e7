"""Look-alikes of four of WebArena's sites, as far as a few of its tasks go: pages, forms, logins, a shop's interface.

Each site has a port of its own, and a fifth server resets them all as BrowserGym's service does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

ACCOUNTS = {
    "shopping": ("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": ("admin", "admin1234"),
    "reddit": ("MarvelsGrantMan136", "test1234"),
    "gitlab": ("byteblaze", "hello1234"),
}
LOGINS = {
    "shopping": "/customer/account/login/",
    "shopping_admin": "/admin",
    "reddit": "/login",
    "gitlab": "/users/sign_in",
}
EDIT = "/user/MarvelsGrantMan136/edit_biography"
CANDLES = {
    "tall-pink": "Tall Pink Taper Candles - 4 Piece",
    "spaas-white": "SPAAS White Taper Candles - 4 Pack, 10 Inch Tall Candles",
    "white-starfish": "White Starfish Wall Candle Sconces Set of 2",
}


@dataclass
class State:
    """What tasks change on the sites."""

    cart: list[str] = field(default_factory=list[str])
    orders: list[str] = field(default_factory=lambda: ["B000OLD"])
    reviews: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    bio: str = "I like cats"
    posts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    members: dict[str, str] = field(default_factory=lambda: {"byteblaze": "Owner"})


@dataclass
class Sites:
    """The sites as they are: ``urls`` by the names of their variables."""

    urls: dict[str, str]
    state: State = field(default_factory=State)
    resets: int = 0


def form(action: str, *fields: str, button: str = "Submit") -> str:
    inner = "".join(f"<p>{one}</p>" for one in fields)
    return f'<form method="post" action="{action}">{inner}<button type="submit">{button}</button></form>'


def text(name: str, label: str, kind: str = "text") -> str:
    return f'<label>{label} <input type="{kind}" name="{name}"></label>'


class Site(BaseHTTPRequestHandler):
    """Answers as one of the sites; ``GET`` and ``POST`` say by the beginning of the path with what."""

    sites: ClassVar[Sites]
    site: ClassVar[str] = ""
    get: ClassVar[dict[str, Callable[[Any], str]]] = {}
    post: ClassVar[dict[str, Callable[[Any], str]]] = {}

    def do_GET(self) -> None:
        self.path_, self.query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        self._answer(self.get)

    def do_POST(self) -> None:
        self.path_ = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        kind = self.headers.get("Content-Type", "")
        self.sent = json.loads(body) if "json" in kind else {key: one[0] for key, one in parse_qs(body).items()}
        if self.path_ == "/sign-in":
            self._sign_in()
        else:
            self._answer(self.post)

    def _answer(self, pages: dict[str, Callable[[Any], str]]) -> None:
        page = next((found for start, found in pages.items() if self.path_.startswith(start)), None)
        public = self.path_ == LOGINS.get(self.site) or self.path_.startswith("/rest/")
        if not public and f"{self.site}=in" not in self.headers.get("Cookie", ""):
            return self._send(302, "", ("Location", LOGINS[self.site]))
        if page is None:
            return self._send(404, "<h1>Not found</h1>")
        found = page(self)
        if pages is self.post and not found.startswith("{") and not found.startswith('"'):
            return self._send(302, "", ("Location", found))
        return self._send(200, found)

    def _sign_in(self) -> None:
        if (self.sent.get("user"), self.sent.get("secret"), self.sent.get("key")) == (*ACCOUNTS[self.site], "k1"):
            self._send(302, "", ("Location", self.home()), ("Set-Cookie", f"{self.site}=in; Path=/"))
        else:
            self._send(302, "", ("Location", LOGINS[self.site]))

    def home(self) -> str:
        return "/admin/dashboard" if self.site == "shopping_admin" else "/"

    def sign_in(self) -> str:
        hidden = '<input type="hidden" name="key" value="k1">'
        return form("/sign-in", hidden, text("user", "Name"), text("secret", "Password", "password"), button="Sign in")

    def _send(self, status: int, body: str, *headers: tuple[str, str]) -> None:
        is_json = body.startswith(("{", "[", '"'))
        page = body if is_json else f"<!doctype html><html><head><title>{self.site}</title></head><body>{body}</body>"
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if is_json else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page.encode())))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        pass

    @property
    def state(self) -> State:
        return self.sites.state


class Shopping(Site):
    site = "shopping"

    def front(self) -> str:
        search = (
            '<form action="/catalogsearch/result/"><label>Search <input name="q"></label><button>Go</button></form>'
        )
        return f"<h1>One Stop Market</h1>{search}"

    def found(self) -> str:
        return f"<h1>Search results for: {escape(self.query['q'][0])}</h1>"

    def product(self) -> str:
        name = next((name for slug, name in CANDLES.items() if slug in self.path_), "Meat substitute B01CTR3DLE")
        rate = form("/review", text("nickname", "Nickname"), text("stars", "Stars"), button="Rate")
        hidden = f'<input type="hidden" name="product" value="{name}">'
        return f"<h1>{name}</h1>{form('/add', hidden, button='Add to Cart')}{rate}"

    def add(self) -> str:
        self.state.cart.append(self.sent["product"])
        return "/checkout/cart"

    def cart(self) -> str:
        items = "".join(f"<li>{one}</li>" for one in self.state.cart)
        return f"<h1>Cart</h1><ul>{items}</ul>{form('/order', button='Place Order')}"

    def order(self) -> str:
        self.state.orders.append(self.state.cart.pop())
        return "/"

    def ordered(self) -> str:
        number = int(self.path_.rstrip("/").rsplit("/", 1)[1])
        return f'<div class="order-details-items ordered">{self.state.orders[number - 190]}</div>'

    def review(self) -> str:
        percent = 20 * int(self.sent["stars"])
        rating = {"rating_name": "Rating", "percent": percent}
        self.state.reviews.append({"nickname": self.sent["nickname"], "ratings": [rating]})
        return "/"

    def token(self) -> str:
        assert self.sent == {"username": "admin", "password": "admin1234"}
        return '"the-token"'

    def rest(self) -> str:
        if self.headers.get("Authorization") != "Bearer the-token":
            return '{"message": "no"}'
        if self.path_.endswith("/reviews"):
            return json.dumps(self.state.reviews)
        assert self.query["searchCriteria[sortOrders][0][direction]"] == ["DESC"]
        return json.dumps({"items": [{"increment_id": f"{189 + len(self.state.orders):09}"}]})

    get: ClassVar = {
        LOGINS["shopping"]: Site.sign_in,
        "/catalogsearch": found,
        "/checkout/cart": cart,
        "/sales/order/view/order_id/": ordered,
        "/rest/V1/": rest,
        **dict.fromkeys((f"/{slug}" for slug in [*CANDLES, "meat"]), product),
        "/": front,
    }
    post: ClassVar = {"/add": add, "/order": order, "/review": review, "/rest/default/V1/integration": token}


class Admin(Site):
    site = "shopping_admin"

    def dashboard(self) -> str:
        return '<h1>Dashboard</h1><a href="/admin/sales_rule/promo_quote/new">New rule</a>'

    def rule(self) -> str:
        return """<h1>New Cart Price Rule</h1><label>Name <input name="name"></label>
<label>Website <select multiple name="website_ids"><option>Main Website</select></label>
<label>Groups <select multiple name="customer_group_ids"><option>NOT LOGGED IN<option>General</select></label>
<div data-index="actions"><div class="admin__collapsible-title" onclick="inner.hidden = false">Actions</div>
<div id="inner"><label>Apply <select name="simple_action"><option value="by_percent">Percent
<option value="cart_fixed">Fixed</select></label><label>Amount <input name="discount_amount"></label></div></div>"""

    def start(self) -> str:
        return self.dashboard() if "shopping_admin=in" in self.headers.get("Cookie", "") else self.sign_in()

    get: ClassVar = {"/admin/sales_rule/promo_quote": rule, "/admin/dashboard": dashboard, "/admin": start}


class Reddit(Site):
    site = "reddit"

    def front(self) -> str:
        return '<h1>Postmill</h1><a href="/user/MarvelsGrantMan136">MarvelsGrantMan136</a> <a href="/submit">Submit</a>'

    def user(self) -> str:
        shown = f'<div class="user-bio__biography">{escape(self.state.bio)}</div>'
        return f"{shown}{form(EDIT, text('user_biography[biography]', 'Biography'), button='Save')}"

    def edit(self) -> str:
        self.state.bio = self.sent["user_biography[biography]"]
        return "/user/MarvelsGrantMan136"

    def new(self) -> str:
        return form("/submit", text("title", "Title"), text("forum", "Forum"), button="Create submission")

    def submit(self) -> str:
        self.state.posts.append((self.sent["forum"], self.sent["title"]))
        return f"/f/{self.sent['forum']}/{len(self.state.posts)}/some-title"

    def post_(self) -> str:
        number = int(self.path_.split("/")[3])
        return f'<div class="submission__inner">{escape(self.state.posts[number - 1][1])}</div>'

    get: ClassVar = {LOGINS["reddit"]: Site.sign_in, "/user/": user, "/submit": new, "/f/": post_, "/": front}
    post: ClassVar = {EDIT: edit, "/submit": submit}


class GitLab(Site):
    site = "gitlab"

    def front(self) -> str:
        return '<h1>Projects</h1><a href="/byteblaze/dotfiles/-/project_members">dotfiles</a>'

    def members(self) -> str:
        rows = "".join(
            f'<tr><td data-label="Account"><span class="gl-avatar-labeled-sublabel">@{name}</span></td>'
            f'<td class="col-max-role"><span>{role}</span></td></tr>'
            for name, role in self.state.members.items()
        )
        invite = form("/invite", text("name", "Username"), text("role", "Role"), button="Invite")
        return f"<table>{rows}</table>{invite}"

    def invite(self) -> str:
        self.state.members[self.sent["name"]] = self.sent["role"]
        return "/byteblaze/dotfiles/-/project_members"

    get: ClassVar = {LOGINS["gitlab"]: Site.sign_in, "/byteblaze/dotfiles": members, "/": front}
    post: ClassVar = {"/invite": invite}


class Service(BaseHTTPRequestHandler):
    """Resets the sites, as BrowserGym's service for it."""

    sites: ClassVar[Sites]

    def do_GET(self) -> None:
        if self.path == "/reset":
            self.sites.state, self.sites.resets = State(), self.sites.resets + 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Ready for duty!" if self.path == "/status" else b"Reset initiated")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(address: str) -> Generator[Sites]:
    """Serve the sites at an address of this machine; ``urls`` has WA_SHOPPING and the like, and WA_FULL_RESET."""
    sites = Sites({})
    kinds = {"WA_SHOPPING": Shopping, "WA_SHOPPING_ADMIN": Admin, "WA_REDDIT": Reddit, "WA_GITLAB": GitLab}
    servers: list[ThreadingHTTPServer] = []
    for name, kind in {**kinds, "WA_FULL_RESET": Service}.items():
        server = ThreadingHTTPServer((address, 0), type(kind.__name__, (kind,), {"sites": sites}))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = "/admin" if kind is Admin else ""
        sites.urls[name] = f"http://{address}:{server.server_address[1]}{path}"
    try:
        yield sites
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
