// What the page shows of an Operator's work, checked with the Router of `loopd up --model demo`: it plans, has two parts
// done side by side, and sums up. `page.mjs` starts everything, and hands over what its own checks use.

export function withRouter({ check, soon, operator, send, fresh, messages, words, HOSTILE, address }) {
  const line = (page) => page.locator('.work > details > summary').last();
  const stages = (page) => page.locator('.work').last().locator('.stages > li');
  async function ask(page, text) {
    await page.click('#new');
    await page.waitForFunction(() => location.hash === '#new');
    await page.selectOption('#to', 'operator/router');
    await send(page, text);
    await page.waitForFunction(() => location.hash.startsWith('#con_'));
    return (await page.evaluate(() => location.hash)).slice(1);
  }
  return {
    async 'what the Router does is told below the question'(page, context) {
      const id = await ask(page, 'Should we take the train to Milan, or fly?');
      await soon('it says what it does', async () => (await line(page).innerText()).includes('0 of 2 parts done'));
      await soon('the list says that it works', async () => (await page.locator('.row[aria-current]').innerText()).includes('running'));
      check('the panel is closed', !(await page.locator('.stages').isVisible()));
      await line(page).focus();
      await page.keyboard.press('Enter');
      await soon('the keyboard opens it', async () => (await stages(page).count()) >= 4);
      check('both parts are worked on', (await stages(page).filter({ hasText: 'running' }).count()) === 2);
      check('what they execute on is named', (await stages(page).filter({ hasText: 'What speaks against it' }).last().innerText()).includes('demo'));
      await send(page, 'We travel with a child.');
      await soon('what is said meanwhile is a stage', async () => (await stages(page).filter({ hasText: 'You added' }).innerText()).includes('We travel with a child.'));
      await soon('it is answered', async () => (await words(page)).includes('now I sum them up'), 40000);
      await soon('the line sums it up', async () => /planned twice · 3 of 3 parts done · summed up · [\d.]+ s · [\d,.]+ tokens/.test(await line(page).innerText()));
      const told = (await stages(page).locator('strong').allInnerTexts()).join(', ');
      check('every stage is there, in order', told === 'Planning, The plan, What speaks for it, What speaks against it, You added, Planning anew, The plan, What was said since, Summing up', told);
      check('with time and tokens', /[\d.]+ s\s+[\d,.]+ tokens/.test(await stages(page).last().innerText()), await stages(page).last().innerText());
      await stages(page).last().locator('summary').click();
      await soon('and what was said', async () => { const text = await stages(page).last().innerText(); return text.includes('Several agents have worked') && text.includes('now I sum them up'); });
      const before = await stages(page).count();
      await page.reload();
      await line(page).click();
      await soon('after a reload it is the same', async () => (await stages(page).count()) === before && (await line(page).innerText()).includes('summed up'));
      await page.getByRole('link', { name: 'Open the work conversation' }).click();
      await soon('the work has a page of its own', async () => (await page.locator('#head').innerText()).includes('Work of Router') && (await messages(page).count()) === 8);
      check('where nobody writes', !(await page.locator('#write').isVisible()));
      check('the list does not have it', (await page.locator('#list .row').filter({ hasText: 'Should we take the train' }).count()) === 1);
      await page.getByRole('link', { name: 'Back to the conversation' }).click();
      await soon('and leads back', async () => (await page.evaluate(() => location.hash)) === '#' + id && (await line(page).innerText()).includes('summed up'));
      const other = await context.newPage();
      await other.goto(`http://${address}/#${id}`);
      await soon('it stands in another tab as well', async () => (await line(other).innerText()).includes('3 of 3 parts done'));
      await other.close();
    },
    async 'the next answer has a line of its own'(page) {
      await send(page, 'And by bus?');
      await soon('there are two', async () => (await page.locator('.work').count()) === 2 && (await line(page).innerText()).includes('2 of 2 parts done · summed up'), 40000);
      await line(page).click();
      await soon('with its own stages', async () => (await stages(page).count()) === 5);
      check('the first one keeps its own', (await page.locator('.work > details > summary').first().innerText()).includes('3 of 3 parts done'));
    },
    async 'a part is stopped'(page) {
      await ask(page, 'Is it slow?');
      await line(page).click();
      await page.getByRole('button', { name: 'Stop: What speaks against it' }).click();
      await soon('it is stopped', async () => (await stages(page).filter({ has: page.getByText('What speaks against it', { exact: true }) }).last().innerText()).includes('stopped'));
      await soon('and the line says so', async () => (await line(page).innerText()).includes('1 not'), 40000);
    },
    async 'a question of the work is asked where the answer is awaited'(page) {
      await ask(page, 'Router, ask me');
      await page.waitForSelector('.work .ask.open');
      await soon('the line says so', async () => (await line(page).innerText()).includes('waits for an answer'));
      await soon('the list, too, and once', async () => (await page.locator('.row', { hasText: 'Router, ask me' }).count()) === 1 && (await page.locator('.row[aria-current]').innerText()).includes('needs you'));
      await page.click('.work .ask.open button:has-text("green")');
      await soon('it goes on', async () => (await words(page)).includes('You chose green'), 40000);
      await line(page).click();
      await soon('the question is a stage', async () => (await stages(page).filter({ hasText: 'asked' }).innerText()).includes('green'));
    },
    async 'much work stays quick, and its text inert'(page) {
      const id = await fresh(page, 'hello');
      await page.evaluate((conversation) => fetch(`/v1/conversations/${conversation}/members`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ add: ['operator/tester'] }) }), id);
      await page.evaluate((conversation) => fetch(`/v1/conversations/${conversation}/messages`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ to: ['operator/tester'], blocks: [{ type: 'text', text: 'Work hard.' }] }) }), id);
      const work = (await operator('GET', `/v1/conversations/${id}/work`)).items.find((one) => one.work_of.operator === 'operator/tester');
      for (const text of HOSTILE) await operator('POST', `/v1/conversations/${work.id}/messages`, { blocks: [{ type: 'markdown', text }, { type: 'plan', steps: [{ text, target: text }] }, { type: 'result', json: { text } }] });
      for (let n = 0; n < 300; n += 1) await operator('POST', `/v1/conversations/${work.id}/messages`, { blocks: [{ type: 'text', text: `Stage number ${n}.` }] });
      await soon('another operator has a line, too', async () => (await line(page).innerText()).includes('tester'));
      await line(page).click();
      await soon('every stage is there', async () => (await stages(page).count()) === HOSTILE.length + 300);
      check('no script ran', (await page.evaluate(() => window.hit)) === undefined);
      check('no element came of text', (await page.locator('.work :is(script, img, svg, iframe, b)').count()) === 0);
      check('turned text is marked', (await page.locator('.work').last().textContent()).includes('⟦U+202E⟧gnp.exe'));
      check('nothing runs over', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('#log').scrollWidth <= document.querySelector('#log').clientWidth));
      const took = Date.now();
      await operator('POST', `/v1/conversations/${work.id}/messages`, { blocks: [{ type: 'text', text: 'The last one.' }] });
      // What is not on the screen is not laid out, and has no inner text.
      await soon('one more is there at once', async () => (await stages(page).last().textContent()).includes('The last one.'));
      check('and quickly', Date.now() - took < 2000, `${Date.now() - took}`);
    },
    async 'a Router answer to look at'(page) {
      await ask(page, 'Should we take the train to Milan, or fly?');
      await soon('it is answered', async () => (await words(page)).includes('now I sum them up'), 40000);
      await line(page).click();
      await soon('all of it', async () => (await stages(page).count()) === 5);
      await page.locator('#log').evaluate((log) => { log.scrollTop = 0; });
      await page.mouse.move(700, 780);
    },
  };
}
