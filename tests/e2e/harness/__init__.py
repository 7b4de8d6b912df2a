"""What the end-to-end tests stand on: raw streams, a scripted origin, a proxy of one's own."""
