// Checks the built-in page in a real browser, against a real server that it starts, kills and starts again.
//
//   mkdir /tmp/page && cd /tmp/page && npm i playwright-core axe-core
//   node REPOSITORY/crates/server/tests/page/page.mjs PATH/TO/loopd [FOLDER FOR PICTURES]
//
// It needs node 20 and a Chromium (CHROMIUM=/usr/bin/chromium), and uses no network but loopback. With PAGE_HTML=FILE
// it shows that file instead of the page in the binary. The last line sums up; the exit code is 1 if a check failed.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withRouter } from './router.mjs';

const require = createRequire(join(process.cwd(), 'package.json'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const [loopd, pictures] = process.argv.slice(2);
const data = mkdtempSync(join(tmpdir(), 'loopd-page-'));
const problems = [], outside = [];
let passed = 0, only = process.env.ONLY;

function check(what, ok, detail = '') {
  if (ok) passed += 1; else { problems.push(what); console.error(`FAILED: ${what} ${detail}`); }
}
async function soon(what, fits, ms = 15000) {
  const end = Date.now() + ms;
  let last;
  do {
    last = await fits().catch((error) => { last = error; return false; });
    if (last) return check(what, true);
    await new Promise((go) => setTimeout(go, 50));
  } while (Date.now() < end);
  check(what, false, 'in time');
}

// ---- The server.

let server, address = '127.0.0.1:0';
function start(...command) {
  return new Promise((done, fail) => {
    server = spawn(loopd, [...(command.length ? command : ['serve']), '--data', data, '--addr', address], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    const read = (bytes) => {
      said += bytes;
      const url = said.match(/http:\/\/(\S+)\/sign-in\?code=\S+/);
      if (url) { address = url[1]; done(url[0]); }
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
    server.on('exit', () => fail(new Error('the server ended: ' + said)));
  });
}
const kill = () => new Promise((done) => { server.removeAllListeners('exit'); server.once('exit', done); server.kill('SIGKILL'); });
function token() {
  const made = spawnSync(loopd, ['token', '--data', data, '--actor', 'operator/tester', '--role', 'operator', '--role', 'harness'], { encoding: 'utf8' });
  return made.stdout.match(/loopd_\S+/)[0];
}
let secret;
async function operator(method, path, body) {
  const headers = { authorization: 'Bearer ' + secret, 'content-type': 'application/json' };
  const response = await fetch(`http://${address}${path}`, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
  return text ? JSON.parse(text) : null;
}

// ---- The browser.

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-quic', '--disable-background-networking'],
});
async function newContext(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1240, height: 800 }, ...options });
  context.setDefaultTimeout(8000);
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.violatedDirective + ' ' + event.blockedURI));
  });
  context.on('request', (request) => { if (!request.url().startsWith(`http://${address}`) && !request.url().startsWith('data:')) outside.push(request.url()); });
  context.on('weberror', (error) => check('no error in the page', false, error.error().stack));
  if (process.env.PAGE_HTML) {
    const html = readFileSync(process.env.PAGE_HTML, 'utf8');
    const digest = (tag) => createHash('sha256').update(html.split(`<${tag}>`)[1].split(`</${tag}>`)[0]).digest('base64');
    await context.route((url) => url.pathname === '/', async (route) => {
      const response = await route.fetch();
      const policy = response.headers()['content-security-policy'].replace(/(script|style)-src '[^']+'/g, (_, tag) => `${tag}-src 'sha256-${digest(tag)}'`);
      await route.fulfill({ status: 200, headers: { ...response.headers(), 'content-security-policy': policy }, body: html });
    });
  }
  return context;
}
async function enter(page, url) {
  await page.goto(url);
  // Where a redirect leads, no file can be shown instead.
  if (process.env.PAGE_HTML) await page.goto(`http://${address}/`);
}
const messages = (page) => page.locator('.msg:not(.waits)');
const last = (page) => messages(page).last();
const words = async (page) => (await last(page).locator('.body').innerText()).trim();
const count = (text, part) => text.split(part).length - 1;
async function send(page, text) {
  await page.fill('#text', text);
  await page.press('#text', 'Enter');
}
async function fresh(page, text) {
  await page.click('#new');
  await page.waitForFunction(() => location.hash === '#new');
  await send(page, text);
  await page.waitForFunction(() => location.hash.startsWith('#con_'));
  return (await page.evaluate(() => location.hash)).slice(1);
}
async function withOperator(page, text) {
  const id = await fresh(page, text);
  await soon('it answers', async () => (await last(page).innerText()).includes('tokens'));
  await page.evaluate((conversation) => fetch(`/v1/conversations/${conversation}/members`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ add: ['operator/tester'] }) }), id);
  return id;
}
const picture = async (page, name) => { if (pictures) await page.screenshot({ path: join(pictures, name + '.png') }); };

const SLOW = 'Nothing is lost, and nothing is said twice.';
const HOSTILE = [
  '<script>window.hit=1</script>', '<img src=x onerror="window.hit=1">', '"><svg onload=window.hit=1>', '[x](javascript:window.hit=1)', '![x](http://evil.invalid/a.png)',
  '<iframe src="http://evil.invalid/"></iframe>', '[good.example](http://evil.invalid/)', '`</code><script>window.hit=1</script>`', '```\n</pre><script>window.hit=1</script>\n```',
  '| <b onclick=window.hit=1>a</b> | b |\n|---|---|\n| x | [y](data:text/html,<script>1</script>) |', '\u202egnp.exe\u202c', '\u2066hidden\u2069', 'a\u0000b\u001b[31mc\u0007', '\u{e0041}\u{e0042}',
  'https://evil.invalid/' + 'a'.repeat(3000), 'W'.repeat(5000), '*'.repeat(3000) + '['.repeat(3000) + '`'.repeat(3001), '> '.repeat(2000), '{{constructor.constructor("window.hit=1")()}}',
];

const steps = {
  async 'the demo agent answers, and its text arrives piece by piece'(page) {
    await fresh(page, 'slow please');
    const seen = new Set();
    const end = Date.now() + 40000;
    while (Date.now() < end) {
      const text = await words(page).catch(() => '');
      seen.add(text);
      if (text.includes(SLOW)) break;
      await new Promise((go) => setTimeout(go, 60));
    }
    check('text arrives in pieces', seen.size > 6, `${seen.size} states`);
    await soon('the answer is whole', async () => (await words(page)).includes(SLOW));
    check('it is said once', count(await page.locator('#messages').innerText(), SLOW) === 1);
    check('the composer is empty', (await page.inputValue('#text')) === '');
  },
  async 'a question is answered'(page) {
    await fresh(page, 'ask me');
    await page.waitForSelector('.ask.open');
    await soon('the list says so', async () => (await page.locator('.row[aria-current]').innerText()).includes('needs you'));
    await picture(page, 'question');
    await page.click('.ask.open button:has-text("green")');
    await soon('the answer arrives', async () => (await words(page)).includes('You chose green'));
    await soon('the card is closed', async () => (await page.locator('.ask.open').count()) === 0 && (await page.locator('.ask .said').innerText()) === 'green');
    check('the answer stands in its card only', (await messages(page).count()) === 2);
  },
  async 'a running answer is steered and stopped'(page) {
    await fresh(page, 'slow one');
    await page.waitForSelector('#steering:not([hidden])');
    await send(page, 'and be brief');
    await soon('the text is shown with the answer', async () => (await last(page).innerText()).includes('and be brief'));
    await page.click('.foot button:has-text("Stop")');
    await soon('it stops', async () => (await last(page).locator('.foot').innerText()).includes('stopped'));
    check('steering made no message', (await messages(page).count()) === 2);
  },
  async 'a reload in the middle goes on'(page) {
    await fresh(page, 'slow reload');
    await soon('text arrives', async () => (await words(page)).length > 30);
    await page.reload();
    await soon('it is there again', async () => (await words(page)).length > 30);
    await soon('it ends', async () => (await words(page)).includes(SLOW), 40000);
    check('once', count(await page.locator('#messages').innerText(), 'This answer takes its time') === 1);
  },
  async 'the server dies in the middle of an answer and comes back'(page) {
    await fresh(page, 'slow crash');
    await soon('text arrives', async () => (await words(page)).length > 60);
    const before = await words(page);
    await last(page).evaluate((node) => { window.shortest = Infinity; window.timer = setInterval(() => { window.shortest = Math.min(window.shortest, node.isConnected ? node.innerText.length : 0); }, 10); });
    const length = (await last(page).innerText()).length;
    await kill();
    await soon('a notice', async () => (await page.locator('#banner').innerText()).includes('Connection lost'));
    check('what was read stays', (await words(page)).startsWith(before.slice(0, 40)));
    await page.fill('#text', 'said while nobody listened');
    await page.evaluate(() => { document.querySelector('#steer').checked = false; });
    await page.press('#text', 'Enter');
    await soon('it waits', async () => (await page.locator('.msg.waits').innerText()).includes('sent again by itself'));
    await start();
    await soon('the notice goes', async () => page.locator('#banner').isHidden());
    await soon('it goes on to its end', async () => (await page.locator('#messages').innerText()).includes(SLOW), 60000);
    await soon('what waited is said', async () => (await page.locator('.msg.waits').count()) === 0);
    const text = await page.locator('#messages').innerText();
    check('the answer stands once', count(text, 'This answer takes its time') === 1, text);
    check('what waited stands once', count(text, 'You said: said while nobody listened') <= 1 && count(text, '\nsaid while nobody listened') === 1, text);
    const shortest = await page.evaluate(() => { clearInterval(window.timer); return window.shortest; });
    check('no jump back', shortest > length - 30, `${shortest} of ${length}`);
  },
  async 'questions of all kinds'(page, context) {
    const id = await withOperator(page, 'hello');
    const ask = (body) => operator('POST', `/v1/conversations/${id}/questions`, { timeout_s: 600, prompt: 'What now?', ...body });
    const args = '{"path":"/tmp/x","path":"/etc/passwd"}';
    const confirm = await ask({ kind: 'confirm', title: 'Delete a file', authorises: { tool: 'delete', args } });
    const card = (question) => page.locator('#' + question.id);
    await soon('the exact call is shown', async () => (await card(confirm).locator('pre').innerText()).includes(args));
    await card(confirm).getByText('Accept').click();
    await soon('accepted', async () => (await operator('GET', '/v1/questions/' + confirm.id)).status === 'answered');
    const declined = await ask({ kind: 'confirm' });
    await card(declined).getByText('Decline').click();
    await soon('declined', async () => (await operator('GET', '/v1/questions/' + declined.id)).status === 'declined');
    const schema = { type: 'object', required: ['city', 'days'], properties: { city: { type: 'string', title: 'City' }, days: { type: 'integer', minimum: 1 }, class: { enum: ['first', 'second'] }, bike: { type: 'boolean', description: 'Take a bike' } } };
    const form = await ask({ kind: 'ask', schema, prompt: 'Where to?' });
    await card(form).getByLabel('City').fill('Bern');
    await card(form).getByLabel('days').fill('3');
    await card(form).getByLabel('bike').check();
    await picture(page, 'form');
    await card(form).getByRole('button', { name: 'Answer', exact: true }).click();
    await soon('the form arrives', async () => JSON.stringify((await operator('GET', '/v1/questions/' + form.id)).answer?.value) === '{"bike":true,"city":"Bern","days":3}');
    const free = await ask({ kind: 'ask', choices: [{ value: 'a', label: 'Alpha', description: 'the first' }], free_text: true });
    await card(free).getByRole('textbox').fill('something else');
    await card(free).getByRole('textbox').press('Enter');
    await soon('free text', async () => (await operator('GET', '/v1/questions/' + free.id)).answer?.value === 'something else');
    const sent = await ask({ kind: 'ask', choices: [{ value: 'x' }, { value: 'y' }] });
    await card(sent).waitFor();
    // As of a Run that has not taken it yet.
    await page.route('**/answer', (route) => route.fulfill({ json: { ...sent, answer: { by: 'person/me', at: Date.now(), value: 'x', scope: 'once' } } }), { times: 1 });
    await card(sent).getByRole('button', { name: 'x', exact: true }).click();
    await soon('an answer that is on its way is shown as such', async () => (await card(sent).innerText()).includes('sent: it counts once it is taken'));
    check('and no second one is offered', (await card(sent).locator('button, input').count()) === 0);
    await context.request.post(`http://${address}/v1/questions/${sent.id}/answer`, { data: { status: 'answered', value: 'x' }, headers: { origin: `http://${address}` } });
    await soon('until it is taken', async () => { const text = await card(sent).innerText(); return text.includes('x') && !text.includes('sent:'); });
    const late = await ask({ kind: 'ask' });
    await card(late).waitFor();
    await page.route('**/v1/stream*', (route) => route.abort());
    await operator('POST', `/v1/questions/${late.id}/withdraw`);
    await page.evaluate(async (question) => { await fetch(`/v1/questions/${question}`); }, late.id);
    await page.unroute('**/v1/stream*');
    await soon('a closed question says how', async () => (await card(late).innerText()).includes('nobody needs the answer'));
    const twice = await ask({ kind: 'ask', choices: [{ value: 'x' }, { value: 'y' }] });
    await card(twice).waitFor();
    await page.route('**/answer', async (route) => {
      const first = await context.request.post(`http://${address}/v1/questions/${twice.id}/answer`, { data: { status: 'answered', value: 'x' }, headers: { origin: `http://${address}` } });
      check('somebody else is first', first.ok(), await first.text());
      await route.continue();
    }, { times: 1 });
    await card(twice).getByRole('button', { name: 'y', exact: true }).click();
    await soon('a doubled answer shows the refusal', async () => (await page.locator('#refused').innerText()).includes('answered') && (await card(twice).locator('.said').innerText()) === 'x');
  },
  async 'hostile text does nothing'(page) {
    const id = await withOperator(page, 'hello');
    const blocks = HOSTILE.flatMap((text) => [
      { type: 'text', text }, { type: 'markdown', text }, { type: 'tool', name: text.slice(0, 500), status: 'done', args: text, output: text }, { type: 'plan', steps: [{ text, target: text, status: text.slice(0, 10) }] },
      { type: 'error', code: text, message: text },
    ]);
    blocks.push({ type: 'result', json: { html: HOSTILE[1] } }, { type: '__proto__', x: HOSTILE[0] }, { type: 'constructor' }, { type: 'hologram', depth: HOSTILE }, { type: 'progress', text: 'x', done: 5, total: 3 });
    await page.evaluate(({ id: conversation, title }) => fetch('/v1/conversations/' + conversation, { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ title }) }), { id, title: '\u202e' + HOSTILE[1] });
    for (let at = 0; at < blocks.length; at += 50) await operator('POST', `/v1/conversations/${id}/messages`, { blocks: blocks.slice(at, at + 50) });
    for (const block of [{ type: 'text', text: 7 }, { type: 'plan', steps: 'no' }]) {
      check('a known block of another shape is refused', await operator('POST', `/v1/conversations/${id}/messages`, { blocks: [block] }).then(() => false, (error) => error.message.includes('422')));
    }
    await soon('it is shown', async () => (await page.locator('#messages').innerText()).includes('hologram'));
    const text = await page.locator('#messages').textContent();
    check('turned text is marked', text.includes('⟦U+202E⟧gnp.exe') && text.includes('⟦U+2066⟧') && text.includes('⟦U+0000⟧') && text.includes('⟦U+E0041⟧') && !/[\u202a-\u202e\u2066-\u2069\u0000\u001b]/.test(text));
    check('the title, too', (await page.locator('#head').innerText()).includes('⟦U+202E⟧<img'));
    check('no script ran', (await page.evaluate(() => window.hit)) === undefined);
    check('no element came of text', (await page.locator('#messages :is(script, img, svg, iframe, b)').count()) === 0);
    const links = await page.locator('#messages a').evaluateAll((all) => all.map((a) => [a.protocol, a.rel]));
    check('links are plain', links.length > 0 && links.every(([protocol, rel]) => protocol === 'http:' || protocol === 'https:' ? rel.includes('noopener') : false), JSON.stringify(links));
    check('nothing runs over', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('#log').scrollWidth <= document.querySelector('#log').clientWidth));
    const huge = Date.now();
    await operator('POST', `/v1/conversations/${id}/messages`, { blocks: [{ type: 'markdown', text: 'word *and* `more` [x]( **\n'.repeat(36000) }] });
    await picture(page, 'huge');
    await soon('a huge message is cut', async () => (await last(page).locator('button:has-text("Show all 9")').count()) === 1);
    const frame = await page.evaluate(() => new Promise((done) => { const from = performance.now(); requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from))); }));
    await last(page).locator('button:has-text("Show all")').click();
    const all = await page.evaluate(() => new Promise((done) => { const from = performance.now(); requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from))); }));
    check('and freezes nothing', frame < 500 && all < 1500, `${frame} ${all} ${Date.now() - huge}`);
  },
  async 'two tabs stay in step'(page, context) {
    const other = await context.newPage();
    await other.goto(`http://${address}/`);
    const id = await fresh(page, 'slow for two');
    await soon('the other tab lists it', async () => (await other.locator(`a[href="#${id}"]`).count()) === 1);
    await soon('as running', async () => (await other.locator(`a[href="#${id}"]`).innerText()).includes('running'));
    await other.click(`a[href="#${id}"]`);
    await soon('both show the text', async () => (await words(other)).length > 40 && (await words(page)).length > 40);
    await soon('both end', async () => (await words(other)).includes(SLOW) && (await words(page)).includes(SLOW), 40000);
    check('the same', (await words(other)) === (await words(page)));
    await page.click('#head summary');
    await page.click('#head button:has-text("Rename")');
    await page.fill('#head input', 'Another name');
    await page.press('#head input', 'Enter');
    await soon('renamed in both', async () => (await other.locator('#head h2').innerText()) === 'Another name' && (await page.locator('#head h2').innerText()) === 'Another name');
    await page.fill('#text', 'a draft');
    await page.click('#new');
    await page.click(`a[href="#${id}"]`);
    await soon('the draft is kept', async () => (await page.inputValue('#text')) === 'a draft');
    await page.fill('#text', '');
    await page.click('#head summary');
    await page.click('#head button:has-text("Archive")');
    await soon('archived in both', async () => (await other.locator(`#list a[href="#${id}"]`).count()) === 0);
    await other.close();
  },
  async 'reading further up is left alone'(page) {
    const id = await withOperator(page, 'hello');
    for (let n = 0; n < 70; n += 1) await operator('POST', `/v1/conversations/${id}/messages`, { blocks: [{ type: 'markdown', text: `Number **${n}** of many.\n\n- one\n- two` }] });
    await soon('all are there', async () => (await words(page)).includes('Number 69'));
    await page.locator('#log').hover();
    await page.mouse.wheel(0, -1500);
    await page.waitForSelector('#newest:not([hidden])');
    const before = await page.locator('#log').evaluate((log) => log.scrollTop);
    await operator('POST', `/v1/conversations/${id}/messages`, { blocks: [{ type: 'text', text: 'A new one.' }] });
    await soon('it says what is new', async () => (await page.locator('#newest').innerText()).includes('1 new'));
    check('it does not move', Math.abs((await page.locator('#log').evaluate((log) => log.scrollTop)) - before) < 2);
    await page.click('#newest');
    await soon('it jumps', async () => page.locator('#newest').isHidden());
    await page.reload();
    await soon('the last ones are there', async () => (await words(page)).includes('A new one'));
    await page.click('button:has-text("Show earlier")');
    await soon('the first ones, too', async () => (await messages(page).count()) === 73);
    await page.fill('#find', 'Number 11');
    await page.click('.row .found');
    await soon('search leads to the message', async () => (await page.locator('.msg.target').innerText()).includes('Number 11'));
    await page.press('#find', 'Escape');
    check('Escape ends the search', (await page.inputValue('#find')) === '');
  },
  async 'a conversation to look at'(page) {
    const id = await withOperator(page, 'Which trains go from Bern to Milan on Friday?');
    await operator('POST', `/v1/conversations/${id}/messages`, { blocks: [
      { type: 'plan', steps: [{ text: 'Look up the timetable', status: 'done' }, { text: 'Compare prices', target: 'operator/tester', status: 'running' }, { text: 'Book seats', status: 'pending' }] },
      { type: 'tool', name: 'timetable', status: 'done', args: '{"from":"Bern","to":"Milano Centrale","day":"2026-12-04"}', output: '[{"at":"07:34","arrives":"10:37"}]' },
      { type: 'progress', text: 'Comparing prices', done: 3, total: 8 },
      { type: 'markdown', text: '## Two that fit\n\n| Leaves | Arrives | Price |\n|---|---|---|\n| 07:34 | 10:37 | 59 CHF |\n| 11:34 | 14:37 | 45 CHF |\n\nThe later one is **cheaper**, and both are direct. Run `loopctl conv show last` for all of it:\n\n```\n11:34  Bern\n12:10  Brig\n14:37  Milano Centrale\n```' },
    ] });
    await operator('POST', `/v1/conversations/${id}/questions`, { kind: 'confirm', timeout_s: 1500, title: 'Book two seats', prompt: 'The seats on the 11:34 train cost 90 CHF and cannot be returned.', authorises: { tool: 'book_seats', args: '{"train":"EC 57","day":"2026-12-04","seats":2,"price_chf":90}' } });
    await page.waitForSelector('.ask.open');
    await page.mouse.move(700, 300);
  },
};

async function accessible(page, name) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await window.axe.run()).violations.filter((one) => ['serious', 'critical'].includes(one.impact)).map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`));
  check(`no serious finding: ${name}`, found.length === 0, found.join('\n'));
}

try {
  secret = token();
  const url = await start();
  const stranger = await (await newContext()).newPage();
  await stranger.goto(`http://${address}/`);
  await soon('a stranger is told how to get in', async () => (await stranger.locator('#gate').innerText()).includes('loopd serve'));
  await picture(stranger, 'gate');
  const context = await newContext();
  const page = await context.newPage();
  await enter(page, url);
  await soon('signed in', async () => (await page.locator('#who').innerText()).includes('person/me'));
  await enter(page, url);
  await soon('a used address does no harm', async () => (await page.locator('#who').innerText()).includes('person/me'));
  const take = async (all) => {
    for (const [name, step] of Object.entries(all)) {
      if (only && !only.split('|').some((one) => name.includes(one))) continue;
      try { await step(page, context); } catch (error) { check(name, false, String(error)); await picture(page, 'failed'); }
      if (await page.evaluate(() => window.violations.length)) check(`no violation: ${name}`, false, JSON.stringify(await page.evaluate(() => window.violations)));
    }
  };
  await take(steps);
  const looks = { light: { colorScheme: 'light' }, dark: { colorScheme: 'dark' }, 'phone-light': { colorScheme: 'light', width: 390 }, 'phone-dark': { colorScheme: 'dark', width: 390 } };
  for (const [name, { colorScheme, width }] of Object.entries(looks)) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width: width ?? 1240, height: 800 });
    await messages(page).first().waitFor();
    await picture(page, name);
    await accessible(page, name);
    await page.evaluate(() => { location.hash = ''; });
    await picture(page, name + '-list');
    await accessible(page, name + ', the list');
    await page.goBack();
    check(`nothing runs over: ${name}`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
  await page.setViewportSize({ width: 1240, height: 800 });
  await page.focus('#new');
  const order = [];
  for (let n = 0; n < 40; n += 1) { order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName)); await page.keyboard.press('Tab'); }
  check('the keyboard reaches everything', ['new', 'find', 'row', 'log', 'text', 'to'].every((one) => order.includes(one)), order.join(' '));
  await kill();
  await start('up', '--model', 'demo');
  await page.reload();
  await soon('the Router is there', async () => (await page.locator('#to option[value="operator/router"]').count()) === 1);
  await take(withRouter({ check, soon, operator, send, fresh, messages, words, HOSTILE, address }));
  for (const [name, { colorScheme, width }] of Object.entries(looks)) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width: width ?? 1240, height: width ? 800 : 940 });
    await page.locator('#log').evaluate((log) => { log.scrollTop = 0; });
    await picture(page, 'router-' + name);
    if (!only) await accessible(page, 'router, ' + name);
    check(`nothing runs over: router, ${name}`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('#log').scrollWidth <= document.querySelector('#log').clientWidth));
  }
  check('nothing leaves for elsewhere', outside.length === 0, outside.join(' '));
} finally {
  await browser.close();
  await kill();
  rmSync(data, { recursive: true, force: true });
}
console.log(`page: ${passed} checks passed, ${problems.length} failed`);
process.exitCode = problems.length ? 1 : 0;
