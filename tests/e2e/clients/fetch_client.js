// Node's own fetch, which knows nothing of a proxy by itself.
'use strict';
const fs = require('fs');

const [action, url, file] = process.argv.slice(2);

async function main() {
  const options = action === 'post' ? { method: 'POST', body: fs.readFileSync(file) } : {};
  const response = await fetch(url, options);
  console.log(response.status);
  for await (const data of response.body) process.stdout.write(data);
}

main().catch((error) => {
  console.error('error: ' + error.message + (error.cause ? ': ' + error.cause.message : ''));
  process.exit(1);
});
