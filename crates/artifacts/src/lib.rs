//! Durable content-addressed bytes behind one provider.
