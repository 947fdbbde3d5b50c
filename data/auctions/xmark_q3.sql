-- The first and the last increase of the open auctions whose last is at least twice the first.
-- XMark, Query 3, as SQL over the streams of the document.
-- The end of an auction closes its bidders (bidder.open_auction).
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bidder USING xmark OPTIONS (path '${XMARK}', stream 'bidder');

SELECT f.open_auction, f.increase AS first, l.increase AS last
FROM (SELECT open_auction, increase FROM bidder WHERE position = 1) f
JOIN (
  SELECT open_auction, increase
  FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY open_auction ORDER BY position DESC) AS place FROM bidder)
  WHERE place = 1
) l ON l.open_auction = f.open_auction
WHERE f.increase * 2 <= l.increase;
