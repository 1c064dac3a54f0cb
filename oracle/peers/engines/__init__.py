"""Engines on other people's libraries; each module runs inside a worker process (`tenferro_ref.isolation.engine`)."""
