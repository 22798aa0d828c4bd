"""Strangers who connect, say nothing, and connect again when they are let go."""
import select
import socket
import threading


class Crowd:
    """n silent connections to a port of this machine, for as long as it is entered."""

    def __init__(self, port, n):
        self.port, self.n, self.over, self.let_go = port, n, threading.Event(), 0
        self.thread = threading.Thread(target=self._stay)
        self.full = threading.Event()

    def _stay(self):
        members = {}
        poll = select.poll()
        while not self.over.is_set():
            while len(members) < self.n and not self.over.is_set():
                s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
                members[s.fileno()] = s
                poll.register(s, select.POLLIN | select.POLLRDHUP)
            self.full.set()
            self.over.wait(0.1)  # they come again, but leave some of the machine to others
            for fd, _ in poll.poll(0):
                poll.unregister(fd)
                members.pop(fd).close()
                self.let_go += 1
        for s in members.values():
            s.close()

    def __enter__(self):
        self.thread.start()
        self.full.wait(60)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
