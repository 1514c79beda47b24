import { BlockList } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { networkOf } from '../../../worker/auth/auth.ts';

test.each(['203.0.113.7', '::ffff:203.0.113.7', 'unknown'])('counts %s as its own network', (address) => {
  expect(networkOf(address)).toBe(address);
});

/** Groups with few bits, so that networks are often equal and zeros are often omitted. */
const group = fc.constantFrom('0', '1', 'db8', '0DB8', 'ffff');
const whole = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':'));
const shortened = fc
  .tuple(fc.array(group, { maxLength: 7 }), fc.nat(7))
  .map(([groups, at]) => `${groups.slice(0, at).join(':')}::${groups.slice(at).join(':')}`);
const address = fc.oneof(whole, shortened);

test('counts two IPv6 addresses as one exactly if they share a /64 network', () => {
  fc.assert(
    fc.property(address, address, (one, other) => {
      const network = new BlockList();
      network.addSubnet(one, 64, 'ipv6');
      expect(networkOf(one) === networkOf(other)).toBe(network.check(other, 'ipv6'));
    }),
  );
});
