// Runs the tests of a JavaScript solution that server.js has loaded in another process, and prints a nonce at their end.
'use strict';
const fs = require('fs');
const v8 = require('v8');
const vm = require('vm');
const { spawn } = require('child_process');

const given = JSON.parse(fs.readFileSync('case.json', 'utf8'));
fs.unlinkSync('case.json');
const server = spawn(process.execPath, ['server.js', ...given.names], { stdio: ['ignore', 'inherit', 'inherit'] });
const questions = fs.openSync('questions', 'w');
const answers = fs.openSync('answers', 'r');

function read(size) {
  const found = Buffer.alloc(size);
  for (let done = 0, more; done < size; done += more) {
    more = fs.readSync(answers, found, done, size - done, null);
    if (!more) throw new Error("the solution's process has ended");
  }
  return found;
}

function answer() {
  const [what, value] = v8.deserialize(read(read(4).readUInt32LE()));
  if (what === 'error') throw new Error(value);
  return value;
}

function ask(name, values) {
  const message = v8.serialize([name, values]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(message.length);
  fs.writeSync(questions, Buffer.concat([size, message]));
  return answer();
}

for (const [name, isFunction, value] of answer()) {
  globalThis[name] = isFunction ? (...values) => ask(name, values) : value;
}
vm.runInThisContext(given.tests, 'tests.js');
server.kill('SIGKILL');
server.on('exit', () => {
  console.log(given.nonce);
  process.exit(0);
});
