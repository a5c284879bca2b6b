//! The AIWS protocol: strict and canonical JSON, digests, ids, decimals, closed records and the error-code table.
