"""httpx (python3-httpx)."""

import os
import sys

import httpx

action, url = sys.argv[1:3]
method, body = ("POST", open(sys.argv[3], "rb")) if action == "post" else ("GET", None)
verify = os.environ.get("SSL_CERT_FILE", True)
try:
    with httpx.Client(follow_redirects=True, timeout=20, verify=verify) as client:
        with client.stream(method, url, content=body) as response:
            print(response.status_code, flush=True)
            for data in response.iter_raw():
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
except httpx.HTTPError as error:
    sys.exit("error: %s" % error)
