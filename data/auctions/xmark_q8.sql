-- How many items each person bought.
-- XMark, Query 8, as SQL over the streams of the document.
-- Sales are purged once their buyer has come (person.id is unique); the end of the closed auctions (closed_auction.*)
-- closes every person's group.
-- Verdict, followed: refused, join never answers, since nothing closes buyer of closed_auction.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');
CREATE TABLE closed_auction USING xmark OPTIONS (path '${XMARK}', stream 'closed_auction');

SELECT p.id, p.name, COUNT(c.itemref) AS items
FROM person p LEFT JOIN closed_auction c ON c.buyer = p.id
GROUP BY p.id, p.name;
