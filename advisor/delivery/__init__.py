"""Answers on their way out: a message, the channels it goes to, and an outbox so that none gets it twice."""
