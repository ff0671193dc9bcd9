"""Clients without a token, over TLS: as many connections as the server admits before AUTH, each
with 64 KB of a request that does not end, and as many with half a TLS record. Prints the server's
memory.

    strangers.py HOST:PORT PID
"""

import socket
import ssl
import sys

# 45 MiB in parts of 76 KiB, a sixteenth of it of one address. More would wait for their time-out.
ADDRESSES = 16
CONNECTIONS = ADDRESSES * 37
LIMIT_MIB = 256


def resident(pid: str) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) >> 10


def main(address: str, pid: str) -> None:
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for what in ("unfinished requests", "unfinished TLS records"):
        clients = []
        for number in range(CONNECTIONS):
            source = (f"127.0.0.{2 + number % ADDRESSES}", 0)
            plain = socket.create_connection((host, int(port)), timeout=60, source_address=source)
            client = context.wrap_socket(plain)
            try:
                if what == "unfinished requests":
                    client.sendall(b"*1\r\n$65536\r\n" + b"x" * 64_000)
                else:
                    client.sendall(b"*1\r\n$900\r\n" + b"x" * 800)
                    # A record of 16 KiB, without its last bytes.
                    raw = socket.socket(fileno=client.detach())
                    raw.sendall(b"\x17\x03\x03\x40\x00" + b"x" * 16_000)
                    client = raw
            except OSError:
                pass  # The server has closed it, which is what it should do.
            clients.append(client)
        peak = resident(pid)
        print(f"{what}: {len(clients)} connections, {peak} MiB at most")
        assert peak < LIMIT_MIB, peak
        for client in clients:
            client.close()
    with context.wrap_socket(socket.create_connection((host, int(port)), timeout=60)) as client:
        client.sendall(b"PING\r\n")
        reply = client.recv(100)
        assert reply.startswith(b"-NOAUTH"), reply


main(*sys.argv[1:])
