"use strict";

// The formulas of rposst_opt/measures.py and rposst_opt/losses.py, for the sliders. When the page opens, it compares
// them with numbers that the package itself has computed, and says by how much they differ.
const Measures = (() => {
  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];

  function logGamma(x) {
    let sum = LANCZOS[0];
    for (let i = 1; i < LANCZOS.length; i += 1) sum += LANCZOS[i] / (x - 1 + i);
    const t = x + 6.5;
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }

  // The continued fraction of the incomplete beta function, by Lentz's method. It converges in about sqrt(max(a, b))
  // steps where x is below (a + 1) / (a + b + 2).
  function betaFraction(a, b, x) {
    const guard = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
    let c = 1;
    let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
    let fraction = d;
    for (let m = 1; m < 10000; m += 1) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / guard(1 + even * d);
      c = guard(1 + even / c);
      fraction *= d * c;
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / guard(1 + odd * d);
      c = guard(1 + odd / c);
      const factor = d * c;
      fraction *= factor;
      if (Math.abs(factor - 1) < 1e-16) break;
    }
    return fraction;
  }

  // Regularised: P[Binomial(a + b - 1, x) >= a] for whole a and b.
  function incompleteBeta(a, b, x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const log = a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b);
    if (x < (a + 1) / (a + b + 2)) return (Math.exp(log) * betaFraction(a, b, x)) / a;
    return 1 - (Math.exp(log) * betaFraction(b, a, 1 - x)) / b;
  }

  const mean = () => ({ label: "mean", tailWeight: (tail) => tail });
  const worst = () => ({ label: "worst case", tailWeight: (tail) => (tail > 0 ? 1 : 0) });
  const cvar = (fraction) => ({
    label: `CVaR(${Number(fraction.toPrecision(4))})`,
    tailWeight: (tail) => (fraction === 0 ? Number(tail > 0) : Math.min(tail / fraction, 1)),
  });
  // g(u) = P[B_n >= k] + (n u / k) P[B_(n-1) <= k - 2]
  const kOfN = (k, n) => ({
    label: `${k}-of-${n}`,
    tailWeight: (tail) => {
      const atLeast = incompleteBeta(k, n - k + 1, tail);
      if (k === 1) return atLeast;
      return Math.min(1, atLeast + (n / k) * tail * (1 - incompleteBeta(k - 1, n - k + 1, tail)));
    },
  });

  // Not Math.max(...list): there may be more scenarios than a call may have arguments.
  const largest = (list) => list.reduce((most, value) => Math.max(most, value), -Infinity);
  const least = (list) => list.reduce((most, value) => Math.min(most, value), Infinity);

  const equallyLikely = (probabilities) => {
    const most = largest(probabilities);
    return most - least(probabilities) <= 1e-12 * most;
  };

  // Positions of losses, worst first; ties by position.
  const worstFirst = (losses) => losses.map((_, i) => i).sort((i, j) => losses[j] - losses[i] || i - j);

  // Weights in the order given by `order`, and the tails that they begin and end at.
  function weigh(measure, order, probabilities) {
    const count = order.length;
    const equal = equallyLikely(probabilities);
    const weights = new Array(count);
    const tails = new Array(count);
    let sum = 0;
    let before = 0;
    order.forEach((scenario, place) => {
      sum += probabilities[scenario];
      const tail = place === count - 1 ? 1 : equal ? (place + 1) / count : Math.min(sum, 1);
      const after = measure.tailWeight(tail);
      weights[place] = Math.max(after - before, 0);
      tails[place] = tail;
      before = after;
    });
    return { weights, tails };
  }

  // The same weights, where losses that tie with the worst among them share theirs, by their probabilities: nobody
  // weighs more than who is just as bad.
  function shared(weights, order, losses, probabilities, tolerance) {
    const told = new Array(order.length);
    for (let first = 0, end = 0; first < order.length; first = end) {
      const worst = losses[order[first]];
      let [weight, likely] = [0, 0];
      for (end = first; end < order.length && worst - losses[order[end]] <= tolerance; end += 1) {
        weight += weights[end];
        likely += probabilities[order[end]];
      }
      for (let place = first; place < end; place += 1) {
        told[place] = likely > 0 ? (weight * probabilities[order[place]]) / likely : weights[place];
      }
    }
    return told;
  }

  function value(measure, losses, probabilities) {
    const order = worstFirst(losses);
    const { weights } = weigh(measure, order, probabilities);
    return order.reduce((sum, scenario, place) => sum + weights[place] * losses[scenario], 0);
  }

  const pieceAt = (loss, error) => {
    let piece = 0;
    while (piece < loss.knots.length && loss.knots[piece] < error) piece += 1;
    return loss.coefficients[piece];
  };
  const lossOf = (loss, error) => {
    const [constant, linear, quadratic] = pieceAt(loss, error);
    return constant + error * (linear + error * quadratic);
  };
  const slopeOf = (loss, error) => {
    const [, linear, quadratic] = pieceAt(loss, error);
    return linear + 2 * quadratic * error;
  };

  return { largest, least, mean, worst, cvar, kOfN, worstFirst, weigh, shared, value, lossOf, slopeOf };
})();
