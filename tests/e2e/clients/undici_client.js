// undici's ProxyAgent (node-undici). It tunnels everything by CONNECT, plain http too.
'use strict';
const fs = require('fs');
const { ProxyAgent, request } = require('undici');

const [action, url, file] = process.argv.slice(2);

async function main() {
  const ca = process.env.SSL_CERT_FILE ? fs.readFileSync(process.env.SSL_CERT_FILE) : undefined;
  const dispatcher = new ProxyAgent({ uri: process.env.http_proxy, requestTls: { ca } });
  const options = { dispatcher, maxRedirections: 3, method: 'GET' };
  if (action === 'post') {
    options.method = 'POST';
    options.body = fs.createReadStream(file);
    options.headers = { 'content-length': String(fs.statSync(file).size) };
  }
  const { statusCode, body } = await request(url, options);
  console.log(statusCode);
  for await (const data of body) process.stdout.write(data);
  await dispatcher.close();
}

main().catch((error) => {
  console.error('error: ' + error.message);
  process.exit(1);
});
