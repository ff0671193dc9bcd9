"""Gunicorn's settings: the master goes on taking IDs while it forks workers."""


def pre_fork(server, worker):
    import service

    service.take_in_master()
