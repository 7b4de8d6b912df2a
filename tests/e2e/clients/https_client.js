// Node's http and https modules as programs use them: no agent, and no word about a proxy.
'use strict';
const fs = require('fs');

const [action, url, file] = process.argv.slice(2);
const { request } = require(url.startsWith('https:') ? 'https' : 'http');

const options = { method: action === 'get' || action === 'stream' ? 'GET' : 'POST' };
if (action === 'expect') options.headers = { Expect: '100-continue', 'Content-Length': fs.statSync(file).size };
const sent = request(url, options, (response) => {
  console.log(response.statusCode);
  response.pipe(process.stdout);
});
sent.on('error', (error) => {
  console.error('error: ' + error.message);
  process.exit(1);
});
if (options.method === 'GET') sent.end();
else if (action === 'expect') sent.on('continue', () => fs.createReadStream(file).pipe(sent));
else fs.createReadStream(file).pipe(sent);
