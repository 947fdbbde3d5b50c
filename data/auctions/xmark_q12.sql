-- For each person with an income above 50000, how many open auctions began at less than 0.02 % of their income.
-- XMark, Query 12, as SQL over the streams of the document.
-- No key joins people and auctions, so both sides have the same one, 1 AS k; and so all people and all auctions are kept
-- until the open auctions end (open_auction.*), which closes everybody's group.
-- Verdict, followed: refused, join never answers, since nothing closes k_2 of project-2.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');
CREATE TABLE open_auction USING xmark OPTIONS (path '${XMARK}', stream 'open_auction');

SELECT p.id, p.income, COUNT(o.initial) AS items
FROM (SELECT 1 AS k, id, name, income FROM person WHERE income > 50000) p
LEFT JOIN (SELECT 1 AS k, initial FROM open_auction) o ON o.k = p.k AND p.income > 5000 * o.initial
GROUP BY p.id, p.income;
