"""aiohttp (python3-aiohttp)."""

import asyncio
import os
import ssl
import sys

import aiohttp

action, url = sys.argv[1:3]


async def main():
    method, body = ("POST", open(sys.argv[3], "rb")) if action == "post" else ("GET", None)
    context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(trust_env=True, timeout=timeout) as session:
        async with session.request(method, url, data=body, ssl=context) as response:
            print(response.status, flush=True)
            async for data in response.content.iter_any():
                sys.stdout.buffer.write(data)
                sys.stdout.flush()


try:
    asyncio.run(main())
except (aiohttp.ClientError, asyncio.TimeoutError) as error:
    sys.exit("error: %s" % error)
