import path from 'node:path';
import { expect, test } from 'vitest';
import { readGroups, readGuides, readPictures } from '../../../../worker/site/build/guides.ts';
import { docsRouteOf } from '../../../../worker/site/docs/routes.ts';

const DOCS = path.resolve(import.meta.dirname, '../../../../docs');
const guides = readGuides(DOCS);
const names = guides.map(({ name }) => name);

const attributes = (html: string, name: string) =>
  [...html.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value]) => value!);

test('lists every guide in a group, and no others', () => {
  const listed = readGroups(DOCS).flatMap((group) => group.guides.map(({ name }) => name));
  expect(listed.toSorted()).toEqual(names.filter((name) => !name.startsWith('decisions/')).toSorted());
});

test('every link of a guide leads to a guide, to a heading that exists, or to another site', () => {
  const anchors = new Map(guides.map(({ name, html }) => [name, new Set(attributes(html, 'id'))]));
  const dead = guides.flatMap(({ name, html }) =>
    attributes(html, 'href').filter((href) => {
      if (href.startsWith('https://') || href === '/docs') return false;
      const { pathname, hash } = new URL(href, `http://host/docs/guides/${name}`);
      const route = docsRouteOf(pathname);
      const target = route.kind === 'guide' ? anchors.get(route.name) : undefined;
      return target === undefined || (hash !== '' && !target.has(decodeURIComponent(hash.slice(1))));
    }),
  );
  expect(dead).toEqual([]);
  expect(guides.flatMap(({ html }) => attributes(html, 'href')).length).toBeGreaterThan(40);
});

test('a guide has no script, no style and nothing of another host', () => {
  for (const { html } of guides) {
    expect(html).not.toMatch(/<script|<style|\sstyle=|\son\w+=|<iframe/i);
    for (const [image] of html.matchAll(/<img[^>]*>/g))
      expect(image).toMatch(/^<img src="\/assets\/[\w-]+\.png" alt="[^"]+" width="\d+" height="\d+"/);
  }
});

test('the guide of the page shows it, in a file that is named by its content', () => {
  const { html } = guides.find(({ name }) => name === 'playground')!;
  const files = [...readPictures(DOCS).values()].map(({ fileName }) => fileName);
  const shown = attributes(html, 'src').map((src) => src.slice(1));
  expect(shown.length).toBeGreaterThan(0);
  expect(files).toEqual(expect.arrayContaining(shown));
});
