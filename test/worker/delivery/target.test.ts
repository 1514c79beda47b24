import { expect, test } from 'vitest';
import { targetProblem } from '../../../worker/delivery/target.ts';

test.each([
  ...[
    'https://hooks.example.com/x?y=1',
    'https://hooks.example.com./',
    'https://a.b.gov.uk/',
    'https://example.dev/',
  ],
  ...[
    'https://münchen.de/',
    'https://例.中国/',
    'https://me.github.io/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]:8443/hook',
  ],
])('sends events to %s', (url) => {
  expect(targetProblem(url, false)).toBeNull();
});

test.each([
  ...['http://hooks.example.com/', 'ftp://hooks.example.com/', 'hooks.example.com', '', 'https://'],
  ...[
    'https://localhost/',
    'https://a.localhost/',
    'https://db.internal/',
    'https://printer.local',
    'https://db/',
  ],
  ...[
    'https://127.0.0.1/',
    'https://0x7f.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://127.1/',
  ],
  ...['https://10.1.2.3/', 'https://172.16.0.1/', 'https://192.168.1.1/', 'https://169.254.169.254/latest'],
  ...['https://100.64.0.1/', 'https://0.0.0.0/', 'https://224.0.0.1/', 'https://255.255.255.255/'],
  ...[
    'https://[::1]/',
    'https://[::]/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:127.0.0.1]/',
  ],
  ...[
    'https://[::ffff:a00:1]/',
    'https://[64:ff9b::a00:1]/',
    'https://[2002:a00:1::]/',
    'https://localhost./',
  ],
  ...[
    'https://localhost../',
    'https://127.0.0.1../',
    'https://hooks.example.com../',
    'https://a..example.com/',
  ],
  ...[
    'https://db.corp/',
    'https://db.svc/',
    'https://a.test/',
    'https://hooks.example/',
    'https://x.home.arpa/',
  ],
  ...['https://a.onion/', 'https://com/', 'https://./', 'https://10.0.0.1.in-addr.arpa/'],
  ...['https://[::127.0.0.1]/', 'https://[::a00:1]/', 'https://[fec0::1]/'],
  ...['https://user:word@hooks.example.com/', 'https://user@hooks.example.com/', 'https://127.0.0.1./'],
])('sends no events to %s', (url) => {
  expect(targetProblem(url, false)).toBeTypeOf('string');
});

test('sends events to local addresses in development only', () => {
  expect(targetProblem('http://127.0.0.1:9000/hook', true)).toBeNull();
  expect(targetProblem('ftp://127.0.0.1:9000/hook', true)).toBeTypeOf('string');
});
