"""Python's urllib.request."""

import ssl
import sys
import os
import urllib.error
import urllib.request

action, url = sys.argv[1:3]
data = open(sys.argv[3], "rb") if action == "post" else None
request = urllib.request.Request(url, data=data, method="POST" if data else "GET")
if data:
    request.add_header("Content-Length", str(os.path.getsize(sys.argv[3])))
    request.add_header("Content-Type", "application/octet-stream")
context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))
try:
    response = urllib.request.urlopen(request, timeout=20, context=context)
except urllib.error.HTTPError as error:
    response = error
except OSError as error:
    sys.exit("error: %s" % error)
print(response.status, flush=True)
while data := response.read1(65536):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
