import type { DeviceSettings } from '../../model/config/device.ts';
import { textsOf } from '../../model/config/model-directory.ts';
import { quantizeKv } from '../../model/open/quantize-kv.ts';
import { Tokenizer } from '../../tokenizer/tokenizer.ts';

/** What a model reads to find the range of its keys and values: prose, code, numbers, several scripts. */
const CALIBRATION_TEXT = `The lighthouse keeper wrote down the weather every morning, whether or not anybody
would read it. On 3 March 1874 she noted a wind of 41 knots, two ships, and a dog that belonged to no one. "It followed
the baker home," she added, "and the baker did not mind." What else is there to say about a harbour in winter?

def median(values: list[float]) -> float:
    """Return the middle value; raise ValueError if there is none."""
    if not values:
        raise ValueError("median of nothing")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

Theorem. There are infinitely many primes. Proof: let p1, ..., pn be primes, and N = p1 * p2 * ... * pn + 1. No pi divides
N, because N mod pi = 1; so a prime divisor of N is a new one.

{"order": 90210, "items": [{"sku": "A-17", "qty": 3, "price": 12.5}, {"sku": "B-2", "qty": 1, "price": 0.99}],
 "paid": true, "note": null, "address": {"city": "Zürich", "zip": "8001"}}

Der Zug nach Wien fährt um 7:45 Uhr von Gleis 9 ab, und wer ihn verpasst, wartet eine Stunde. Le marché ouvre à six
heures; les pêcheurs y vendent ce que la nuit leur a donné. ¿Quién dejó la ventana abierta? Съешь ещё этих мягких
французских булок. 春天来了，河边的柳树发了新芽。東京の天気は晴れ、気温は十八度です。 القمر فوق البحر والمدينة نائمة.

| Element | Symbol | Mass   | Melts at |
| ------- | ------ | ------ | -------- |
| Iron    | Fe     | 55.845 | 1538 C   |
| Gold    | Au     | 196.97 | 1064 C   |

SELECT name, COUNT(*) AS visits FROM guests WHERE arrived >= '2024-01-01' GROUP BY name HAVING COUNT(*) > 2 ORDER BY 2;

Question: A tank holds 240 litres and loses 15 litres an hour. After how many hours is it half empty?
Answer: Half of 240 is 120. 120 / 15 = 8. It is half empty after 8 hours.

Dear Ms Okafor, thank you for your letter of the 12th. I am sorry that the parcel arrived late and wet!!! We have sent
another one today (tracking number 00340434-161094-022115); please keep the first. Yours sincerely, T. Lindqvist

<ul><li><a href="https://example.org/?q=1&amp;page=2">Next</a></li></ul> 0x7fff 1e-12 3.14159265358979 aaaa bbbb AAAA
once upon a time there was a king who had three sons, and the youngest of them could not sleep for thinking.
`;

/** Gives a built model a KV cache of int8 with scales of the text. @throws ModelError with one line */
export async function calibrateKv(directory: string, device: DeviceSettings): Promise<void> {
  const tokenizer = Tokenizer.of(textsOf(directory));
  const sample = tokenizer.encode(CALIBRATION_TEXT, { addSpecialTokens: true, parseSpecial: false });
  await quantizeKv(directory, sample, device);
}
