// Loads the JavaScript solution in solution.js, and serves its functions to tester.js.
'use strict';
const fs = require('fs');
const v8 = require('v8');
const vm = require('vm');

const questions = fs.openSync('questions', 'r');
const answers = fs.openSync('answers', 'w');
Object.assign(globalThis, { require, module: { exports: {} } });
globalThis.exports = module.exports;
vm.runInThisContext(fs.readFileSync('solution.js', 'utf8'), 'solution.js');

function read(size) {
  const found = Buffer.alloc(size);
  for (let done = 0, more; done < size; done += more) {
    more = fs.readSync(questions, found, done, size - done, null);
    if (!more) process.exit(0);
  }
  return found;
}

function reply(message) {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(message.length);
  fs.writeSync(answers, Buffer.concat([size, message]));
}

const names = process.argv.slice(2).filter((name) => vm.runInThisContext(`typeof ${name}`) !== 'undefined');
const found = Object.fromEntries(names.map((name) => [name, vm.runInThisContext(name)]));
reply(v8.serialize(['value', names.map((name) => {
  const isFunction = typeof found[name] === 'function';
  return [name, isFunction, isFunction ? null : found[name]];
})]));
for (;;) {
  const [name, values] = v8.deserialize(read(read(4).readUInt32LE()));
  let message;
  try {
    message = v8.serialize(['value', found[name](...values)]);
  } catch (error) {
    message = v8.serialize(['error', String(error)]);
  }
  reply(message);
}
