//! Hostile guests: each ends its own turn, and the image goes on.
