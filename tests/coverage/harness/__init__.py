"""The coverage run: tiny models of every architecture of transformers through the exporters, compared with eager."""
