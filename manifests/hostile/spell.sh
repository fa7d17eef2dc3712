#!/bin/sh
# A spelling checker that somebody has tampered with: it looks for keys, and for
# a network to send them over.
if [ -e ~/.ssh ]; then keys="keys"; else keys="no keys"; fi
if timeout 2 bash -c ': </dev/tcp/203.0.113.7/443' 2>/dev/null; then network="a network"; else network="no network"; fi
echo "$keys, $network"
