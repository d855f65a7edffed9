"""An attacker without a token, as a process of its own: `attacker.py KIND PORT SECONDS`."""

import socket
import sys
import time

HALF_OPEN = 400
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


def half_open(port: int, until: float) -> None:
    """Hundreds of connections whose requests never arrive; closed ones are opened again."""
    held: list[socket.socket] = []
    while time.monotonic() < until:
        while len(held) < HALF_OPEN and time.monotonic() < until:
            one = socket.socket()
            one.settimeout(1)
            try:
                one.connect(("127.0.0.1", port))
                one.send(HEAD)
            except OSError:
                one.close()
                break
            held.append(one)
        time.sleep(0.1)
        held = [one for one in held if is_open(one)]


def is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        one.recv(65_536)
    except BlockingIOError:
        return True
    except OSError:
        pass
    one.close()
    return False


def headers(port: int, until: float) -> None:
    """Headers without end, on a few connections at once."""
    while time.monotonic() < until:
        held = [one for one in (dialled(port) for _ in range(4)) if one is not None]
        for one in held:
            one.send(HEAD)
        for _ in range(200):
            for one in held:
                try:
                    one.send(b"X: a\r\n" * 10_000)
                except OSError:
                    continue
            if time.monotonic() >= until:
                break
        for one in held:
            one.close()


def guesses(port: int, until: float) -> None:
    """Wrong tokens, codes and receipts, and clients that hang up."""
    body = b'{"code": "guess"}'
    requests = [
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"POST /api/hooks/door HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n",
        b"POST /api/runs/1/receipt?token=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
        b"\0\1\2\r\n\r\n",
    ]
    while time.monotonic() < until:
        for request in requests:
            one = dialled(port)
            if one is None:
                continue
            try:
                one.send(request)
                one.recv(1)
            except OSError:
                pass
            one.close()


def dialled(port: int) -> socket.socket | None:
    one = socket.socket()
    one.settimeout(0.5)
    try:
        one.connect(("127.0.0.1", port))
    except OSError:
        one.close()
        return None
    return one


KINDS = {"half-open": half_open, "headers": headers, "guesses": guesses}

if __name__ == "__main__":
    KINDS[sys.argv[1]](int(sys.argv[2]), time.monotonic() + float(sys.argv[3]))
