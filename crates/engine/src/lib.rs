//! Actors, supervision, scheduler, effect adapters and the worker API.
